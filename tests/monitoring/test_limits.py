"""Control limits have the confidence that they state."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from eigengame import EigenGamePCA
from eigengame.monitoring.limits import effective_rows, reference_limits, theoretical_limits
from eigengame.monitoring.remainder import Remainder, remainder_of

D, K = 30, 5
VARIANCES = np.r_[9, 7, 5, 3, 2, np.linspace(1, 0.1, D - K)]
AXES = np.linalg.qr(np.random.default_rng(0).standard_normal((D, D)))[0]
OUTSIDE = VARIANCES[K:]


def rows(n, seed, factor=1.0):
    draws = np.random.default_rng(seed).standard_normal((n, D))
    return 100 + factor * draws * np.sqrt(VARIANCES) @ AXES.T


FITS = {
    "covariance": {},
    "one pass": {"algorithm": "remembered", "tol": None},
    "refined": {"algorithm": "remembered", "tol": 0.01},
    "without probes": {"algorithm": "remembered", "tol": None, "probes": 0},
    "float64": {"dtype": "float64"},
}


@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
@pytest.mark.parametrize("factor", [1.0, 1e-6], ids=["", "small numbers"])
def test_limits_of_a_fit_have_their_confidence(options, factor):
    pca = EigenGamePCA(K, random_state=0, batch_size=2000, **options).fit(rows(20000, 1, factor))
    limits = pca.control_limits(confidence=0.95)
    found = pca.monitor(rows(20000, 2, factor), limits=limits)
    # Three standard deviations of 20,000 rows are .0046. Box's approximation of a flat spectrum and the estimate of
    # its squares cost up to as much again.
    assert found.t2_alarms.mean() == pytest.approx(0.05, abs=0.006)
    assert found.spe_alarms.mean() == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("name", ["covariance", "one pass", "refined"])
def test_the_spectrum_outside_the_components_is_estimated(name):
    pca = EigenGamePCA(K, random_state=0, batch_size=2000, **FITS[name]).fit(rows(20000, 1))
    found = remainder_of(pca._result, np.ones(K, bool))
    assert found.known == "probes"
    assert found.total == pytest.approx(OUTSIDE.sum(), rel=0.02)
    assert found.square == pytest.approx(np.sum(OUTSIDE**2), rel=0.06)


def test_a_model_without_memory_assumes_equal_variances():
    pca = EigenGamePCA(K, random_state=0).fit(rows(20000, 1))
    found = remainder_of(replace(pca._result, stream=None), np.ones(K, bool))
    assert found.known == "equal"
    assert found.total == pytest.approx(OUTSIDE.sum(), rel=0.02)
    assert found.square == pytest.approx(found.total**2 / (D - K))


def test_limits_of_small_samples_allow_for_their_errors():
    # Of 40 rows the limits of infinitely many are much too narrow for T2.
    alarms = []
    for seed in range(200):
        pca = EigenGamePCA(2, algorithm="exact").fit(rows(40, seed)[:, :3])
        new = rows(200, 1000 + seed)[:, :3]
        alarms.append(pca.monitor(new, limits=0.95).t2_alarms.mean())
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.012)


def test_box_and_f_limits_are_the_formulas():
    limits = theoretical_limits(3, 50, Remainder(6.0, 9.0, "probes", 0.0), 0.99)
    assert limits.t2 == pytest.approx(3 * (50**2 - 1) / (50 * 47) * stats.f.ppf(0.99, 3, 47))
    assert limits.spe == pytest.approx(9 / 6 * stats.chi2.ppf(0.99, 36 / 9))


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"more rows than components.*larger forget"):
        theoretical_limits(5, 5.5, Remainder(1.0, 1.0, "probes", 0.0), 0.99)


def test_effective_rows_are_those_of_the_weights():
    weights = 0.97 ** np.arange(50)
    assert effective_rows(50, 50, 0.97) == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))
    assert effective_rows(10**6, 10**6, 0.97) == pytest.approx(1.97 / 0.03)
    assert effective_rows(10, 30, 1.0) == 30


def test_limits_of_reference_rows_are_order_statistics():
    numbers = np.random.default_rng(0).permutation(99) + 1.0
    limits = reference_limits(numbers, 2 * numbers, 0.99)
    assert (limits.t2, limits.spe) == (99, 198)
    assert reference_limits(numbers, numbers, 0.5).t2 == 50
    with pytest.raises(ValueError, match="at least 99 reference rows, but there are 98"):
        reference_limits(numbers[1:], numbers[1:], 0.99)


def test_limits_of_reference_rows_hold_for_any_distribution():
    def heavy(seed):
        scale = np.random.default_rng(seed).exponential(size=(4000, 1))
        return 100 + scale * (rows(4000, seed) - 100)

    pca = EigenGamePCA(K, random_state=0).fit(heavy(1))
    limits = pca.control_limits(heavy(2), confidence=0.95)
    found, theory = pca.monitor(heavy(3), limits=limits), pca.monitor(heavy(3), limits=0.95)
    for name in ("t2_alarms", "spe_alarms"):
        assert getattr(found, name).mean() == pytest.approx(0.05, abs=0.015)
        assert getattr(theory, name).mean() > 0.1
