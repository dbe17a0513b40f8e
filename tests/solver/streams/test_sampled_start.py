"""Long batches, whose players begin near the components of a sample of the first one.

On a GPU they are planned for long batches; here they are planned on a CPU too.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import Interrupted
from eigengame.metrics import angular_error
from eigengame.solver.planning import make_plan
from eigengame.solver.streams.sampled_start import EACH, SHARE, sampled_places
from eigengame.sources.device_array import DeviceArray
from tests.game_pca import game_pca
from tests.interrupting import Interrupting

N, D, K, PLAYERS, BATCH = 9000, 48, 4, 12, 2112
"""Rows of more numbers than are fitted in float64, and a batch of which there are five, the last one padded."""

SIZES = {"one batch": N, "five batches": BATCH}


@pytest.fixture(autouse=True)
def planned_on_a_cpu(monkeypatch):
    """Plan the mode for all dense rows in float32."""
    monkeypatch.setattr(
        make_plan, "_sampled", lambda problem, *shapes: problem.options.dtype == np.float32
    )


def data(seed=0):
    """Rows whose covariance has about the spectrum 1/i, and a mean of several standard deviations."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]
    rows = rng.normal(size=(N, D)) / np.sqrt(np.arange(1, D + 1))
    return (rows @ turn + 3).astype(np.float32)


class Noting:
    """Notes the space of the plan, and the number of batches."""

    batches = 0

    def plan(self, plan):
        self.space = plan.space

    def batch(self, at):
        self.batches += not at.ended


def fitted(rows, size=N, fit=None, **options):
    settings = {"batch_size": size, "random_state": 0} | options
    return game_pca(K, **settings).fit(DeviceArray(jnp.asarray(rows)), **(fit or {}))


def truth(rows, weights=None, center=True):
    """The variances and the components of rows, in float64."""
    wide = np.asarray(rows).astype(np.float64)
    weights = np.ones(len(wide)) if weights is None else weights
    wide = wide - (weights @ wide / weights.sum() if center else 0)
    values, vectors = np.linalg.eigh((wide.T * weights) @ wide / (weights.sum() - 1))
    return values[::-1][:K], vectors.T[::-1][:K]


def assert_found(pca, rows, weights=None, *, center=True, within=math.pi / 32):
    """Compare components and variances with those of NumPy, and angles with their bounds."""
    values, vectors = truth(rows, weights, center)
    true = angular_error(pca.components_.astype(np.float64), vectors)
    assert pca.certificate_.kind == "certified"
    assert (true <= pca.certificate_.angle).all()
    assert (true < within).all()
    # A component at an angle a has the variance of its eigenvector up to a share of a ** 2.
    np.testing.assert_allclose(pca.explained_variance_, values, rtol=within**2)


# ------------------------------------------------------------------ the sample


@pytest.mark.parametrize(
    ("rows", "players"), [(6000, 12), (100_003, 12), (1000, 15), (EACH * 12 + 1, 12)]
)
def test_a_sample_has_one_row_of_each_part(rows, players):
    places = sampled_places(rows, players)
    count = max(rows // SHARE, EACH * players)
    assert len(places) == count
    assert (np.diff(places) > 0).all()
    # In units of parts: each place is in its own one, up to a row.
    assert (np.abs(places * (count / rows) - np.arange(count) - 0.5) <= 0.5 + count / rows).all()
    assert 0 <= places[0] <= places[-1] < rows
    np.testing.assert_array_equal(places, sampled_places(rows, players))


def test_a_sample_of_many_rows_is_at_no_fixed_distance():
    steps = np.diff(sampled_places(100_000, 4))
    assert len(np.unique(steps)) > SHARE
    assert steps.max() < 2 * SHARE + 2


@pytest.mark.parametrize("rows", [1, 37, EACH * 12])
def test_few_rows_are_all_in_the_sample(rows):
    np.testing.assert_array_equal(sampled_places(rows, 12), np.arange(rows))


# ------------------------------------------------------------------ components


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_components_are_those_of_numpy(size, center):
    rows, noted = data(), Noting()
    pca = fitted(rows, SIZES[size], fit={"progress": noted}, center=center)
    assert (noted.space, noted.batches) == ("sampled score", -(-N // SIZES[size]))
    assert_found(pca, rows, center=center)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rows_in_half_precision_have_the_components_of_the_rounded_rows(dtype):
    rows = jnp.asarray(data(), dtype)
    pca = game_pca(K, batch_size=N, random_state=0).fit(DeviceArray(rows))
    assert_found(pca, rows)


def test_bounds_hold_for_many_seeds():
    for seed in range(8):
        rows = data(seed)
        for size in SIZES.values():
            assert_found(fitted(rows, size, random_state=seed), rows)


@pytest.mark.parametrize("size", SIZES)
def test_sorted_and_periodic_rows_are_no_exception(size):
    rows = data()
    assert_found(fitted(rows[np.argsort(rows[:, 0])], SIZES[size]), rows)
    periodic = np.tile(rows[:90], (N // 90, 1))
    assert_found(fitted(periodic, SIZES[size]), periodic)


@pytest.mark.parametrize("size", SIZES)
def test_rows_of_weight_zero_do_not_count(size):
    rows, rng = data(), np.random.default_rng(1)
    weights = rng.integers(0, 3, N) * (np.arange(N) > BATCH + 100.0)  # none in the first of five
    rows[weights == 0] += 5
    pca = fitted(rows, SIZES[size], fit={"sample_weight": weights})
    assert_found(pca, rows, weights)
    assert pca.n_samples_seen_ == np.count_nonzero(weights)


def test_refinement_begins_with_these_players():
    rows = data()
    pca = fitted(rows, tol=1e-3)
    assert pca.outcome_.converged
    assert_found(pca, rows, within=1e-3)


def test_any_seed_of_scikit_learn_is_accepted():
    rows = data()
    assert_found(fitted(rows, random_state=2**32 - 1), rows)


def test_without_probes_angles_are_estimates():
    for size in SIZES.values():
        pca = fitted(data(), size, probes=0)
        assert pca.certificate_.kind == "estimate"
        assert np.isfinite(pca.certificate_.angle).all()


# ------------------------------------------------------------------ what no row of the sample shows


def unseen(count):
    """Some places that are in no sample of the rows."""
    others = np.setdiff1d(np.arange(N), sampled_places(N, PLAYERS))
    return others[:: len(others) // count][:count]


def test_a_row_that_the_sample_lacks_is_found():
    rows = np.zeros((N, D), np.float32)
    rows[unseen(1), 40] = 5
    pca = fitted(rows)
    values, vectors = truth(rows)
    assert (
        angular_error(pca.components_[:1].astype(float), vectors[:1]) <= pca.certificate_.angle[0]
    )
    assert pca.certificate_.angle[0] < 1e-2
    np.testing.assert_allclose(pca.explained_variance_[0], values[0], rtol=1e-4)


def test_features_that_are_zero_in_the_sample_are_found_by_refinement():
    rows = data() - 3
    rows[:, 40:] = 0
    rows[unseen(3), [41, 43, 45]] = 100, 130, 170
    rows[unseen(3), :40] = 0
    pca = fitted(rows, center=False, tol=1e-2)
    assert pca.outcome_.converged
    assert_found(pca, rows, center=False, within=1e-2)


def test_rare_rows_of_large_norm_are_found_in_one_pass():
    rng = np.random.default_rng(0)
    common, rare = D - 8, 8
    shares = np.r_[np.full(common, 1 / common), np.full(rare, 4e-4)]
    category = rng.choice(D, N, p=shares / shares.sum())
    rows = np.zeros((N, D), np.float32)
    rows[np.arange(N), category] = np.where(category < common, 1, 60) * (
        1 + rng.exponential(size=N)
    )
    pca = fitted(rows)
    values, _ = truth(rows)
    assert pca.explained_variance_.sum() > 0.999 * values.sum()


def test_a_sample_consists_of_rows_with_weight():
    rows, weights = data(), np.zeros(N)
    weights[np.random.default_rng(0).choice(N, N // 50, replace=False)] = 1
    pca = fitted(rows, fit={"sample_weight": weights})
    assert_found(pca, rows, weights, within=1e-2)


def test_features_that_are_zero_in_the_first_batch_are_found_in_the_next_one():
    rows = data() - 3
    rows[: N // 2, D // 2 :] = 0
    rows[N // 2 :, : D // 2] = 0
    pca = fitted(rows, BATCH, center=False)
    values, _ = truth(rows, center=False)
    # Players at random find 0.85 to 0.94 of it, and players that are zero in half of the features 0.63.
    assert pca.explained_variance_.sum() > 0.85 * values.sum()


def test_numbers_that_are_not_finite_are_named_by_their_place():
    for size in SIZES.values():
        rows = data()
        rows[7000, 3] = np.nan
        with pytest.raises(ValueError, match="feature 3 is nan in row 7000"):
            fitted(rows, size)


# ------------------------------------------------------------------ checkpoints


@pytest.mark.parametrize("size", SIZES)
def test_an_interrupted_run_resumes_to_the_same_bits(size, tmp_path):
    rows = data()
    whole = fitted(rows, SIZES[size])
    fit = {"checkpoint": tmp_path, "progress": Interrupting(1 if size == "one batch" else 3)}
    with pytest.raises(Interrupted):
        fitted(rows, SIZES[size], fit=fit)
    # The second call recalls the run without reading rows.
    for _ in range(2):
        pca = fitted(rows, SIZES[size], fit={"checkpoint": tmp_path})
        for name in ("components_", "explained_variance_", "mean_", "var_"):
            np.testing.assert_array_equal(getattr(pca, name), getattr(whole, name))
        np.testing.assert_array_equal(pca.certificate_.angle, whole.certificate_.angle)
