"""Flat spectra: more players after the first pass, or an exact solution at once."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, Interrupted, testing
from eigengame.metrics import angular_error
from eigengame.solver.planning.flat_spectra import MOST, is_flat, players_for_flat

N, D, K = 2000, 320, 6
FLAT = np.r_[np.linspace(1, 0.5, 60), np.full(D - 60, 0.03)]


def rows_of(spectrum, seed=1):
    return testing.rows_with(spectrum, N, seed=seed).data.astype("float32")


def fitted(rows, **options):
    options = {"algorithm": "remembered", "tol": 0.05, "random_state": 0} | options
    return EigenGamePCA(K, dtype="float32", **options).fit(rows)


def exact(rows):
    return np.linalg.svd((rows - rows.mean(axis=0)).astype(float), full_matrices=False)[2][:K]


def test_numbers_of_players_continue_the_spectrum_as_a_power():
    ranks = np.arange(1, 41)
    assert not is_flat(1 / ranks, 16)
    slow = ranks**-0.3
    assert is_flat(slow, 16)
    # (K / k)^-0.3 = 1 / 2 for K = 10 k, which is more than the largest number.
    assert players_for_flat(slow, 16, 10**4, 10**9) == MOST * 16
    assert players_for_flat(ranks**-0.5, 16, 10**4, 10**9) == 64
    # Limits by the number of features and by size; fewer than before never.
    assert players_for_flat(slow, 16, 120, 10**9) == 60
    assert players_for_flat(slow, 16, 1000, 70_000) == 70
    assert players_for_flat(slow, 16, 50, 10**9) == 40
    # Noise alone.
    assert players_for_flat(ranks**-0.02, 16, 10**4, 10**9) == 40


def test_a_flat_spectrum_takes_few_passes():
    rows = rows_of(FLAT)
    grown = fitted(rows)
    given = fitted(rows, extra=9)
    assert grown.outcome_.converged
    assert grown.n_passes_ <= 4
    assert given.n_passes_ > 2 * grown.n_passes_
    assert (angular_error(grown.components_, exact(rows)) <= grown.certificate_.angle).all()


@pytest.mark.parametrize("extra", [4, 9, 18])
@pytest.mark.parametrize("seed", range(4))
def test_a_given_number_of_players_is_certified_too(extra, seed):
    """The players of the first pass leave out much more than those found later, so probes are drawn for these.

    The last directions of a space are far from converged. They must not stand in the way of the first ones.
    """
    rows = rows_of(FLAT, seed=seed + 1)
    found = fitted(rows, extra=extra, random_state=seed)
    assert found.outcome_.converged
    assert (angular_error(found.components_, exact(rows)) <= found.certificate_.angle).all()


@pytest.mark.parametrize("k", [4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_slowly_falling_variances_are_certified_for_any_tolerance(k, seed):
    rows = testing.rows_with(np.arange(1, D + 1) ** -0.4, 6000, seed=seed).data.astype("float32")
    passes = []
    for tol in (np.pi / 32, 0.05, 1e-2):
        found = EigenGamePCA(
            k, algorithm="remembered", tol=tol, random_state=seed, dtype="float32"
        ).fit(rows)
        assert found.outcome_.converged
        passes.append(found.n_passes_)
    assert passes == sorted(passes)


def test_a_model_of_a_flat_spectrum_can_be_continued_and_merged():
    flat, steep = rows_of(FLAT), rows_of(1 / np.arange(1, D + 1), seed=2)
    grown, other = fitted(flat), fitted(steep)
    merged = grown.merge(other)
    assert merged.n_samples_seen_ == 2 * N
    assert fitted(flat).partial_fit(steep[:100]).n_samples_seen_ == N + 100


def test_a_fit_that_grew_resumes_to_the_same_bits(tmp_path):
    class Stopping:
        """Interrupts the first refinement."""

        def batch(self, at):
            if at.task == "refinement":
                raise KeyboardInterrupt

    rows = rows_of(FLAT)
    whole = fitted(rows)
    options = {"algorithm": "remembered", "tol": 0.05, "random_state": 0, "dtype": "float32"}
    with pytest.raises(Interrupted):
        EigenGamePCA(K, **options).fit(rows, checkpoint=tmp_path, progress=Stopping())
    resumed = EigenGamePCA(K, **options).fit(rows, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    assert resumed.n_passes_ == whole.n_passes_


def test_with_few_features_a_flat_spectrum_is_solved_exactly_at_once(monkeypatch):
    from eigengame.solver.planning import make_plan

    monkeypatch.setattr(make_plan, "route_of", lambda *_, **__: "remembered")
    rows = rows_of(FLAT)
    pca = EigenGamePCA(K, random_state=0, dtype="float32").fit(rows)
    assert pca.outcome_.route == "remembered, then covariance"
    assert pca.n_passes_ == 2
    assert angular_error(pca.components_, exact(rows)).max() < 1e-3


def test_probes_are_not_drawn_anew_in_every_pass():
    """With few passes, those of the first players certify more than new ones without any power."""
    spectrum = np.r_[np.linspace(1, 0.5, 30), np.full(120, 0.03)]
    rows = testing.rows_with(spectrum, 1500, seed=1).data.astype("float32")
    bounded = []
    for passes in (3, 6, 10):
        pca = EigenGamePCA(
            6, algorithm="remembered", tol=None, passes=passes, random_state=7, dtype="float32"
        ).fit(np.concatenate([rows, rows]))
        bounded.append(int((pca.certificate_.angle < 1.5).sum()))
    assert bounded[0] >= 3
    assert bounded == sorted(bounded)
    assert bounded[-1] == 6


@pytest.mark.parametrize(
    ("power", "first", "tol", "most"), [(0.3, 1e8, 0.01, 7), (0.6, 1.0, 0.1, 3)]
)
def test_probes_are_kept_where_new_ones_would_not_help(power, first, tol, most):
    """One large variance makes rounding the level; and a level may stop to fall just before a certificate."""
    spectrum = np.arange(1.0, 301) ** -power
    spectrum[0] = first
    rows = testing.rows_with(spectrum, 3000, seed=1).data.astype("float32")
    pca = EigenGamePCA(16, algorithm="remembered", tol=tol, random_state=1, dtype="float32").fit(
        rows
    )
    assert pca.outcome_.converged
    assert pca.n_passes_ <= most
