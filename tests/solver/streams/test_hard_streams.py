"""Streams on which players or numbers once went wrong: ranks of one, means that move, squares that underflow."""

import numpy as np
import pytest

from eigengame.metrics import angular_error
from eigengame.solver.planning import make_plan
from tests.game_pca import game_pca


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("probes", ["auto", 0])
def test_two_distinct_rows_are_fitted_in_float32(seed, probes):
    rows = np.repeat(np.random.default_rng(seed).standard_normal((2, 24)), 25, axis=0)
    pca = game_pca(4, dtype="float32", random_state=seed, probes=probes)
    pca.partial_fit(rows.astype("float32"))
    assert np.isfinite(pca.components_).all()
    difference = rows[:1] - rows[-1:]
    true = difference / np.linalg.norm(difference)
    assert angular_error(pca.components_[:1].astype(float), true)[0] < 1e-5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("far", [30, 100, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_mean_that_moves_leaves_players_orthonormal(far, seed, dtype):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((400, 24)) * 0.8 ** np.arange(24)
    rows[200:] += far * rng.standard_normal(24)
    pca = game_pca(4, random_state=seed, batch_size=100, dtype=dtype).fit(rows.astype(dtype))
    close = {"float64": 1e-10, "float32": 3e-5}[dtype]
    components = pca.components_.astype(float)
    np.testing.assert_allclose(components @ components.T, np.eye(4), atol=close)
    true = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)[:4]
    # In float32 a variance is known to within the rounding of the largest. One pass forgets the coupling of what it
    # keeps and what it drops, so values may be slightly too large; they were up to 38 times too large.
    extra = {"float64": 0.0, "float32": 1e-5 * true[0] ** 2}[dtype]
    assert (pca.singular_values_**2 <= true**2 * (1 + 1e-4) + extra).all()


@pytest.mark.parametrize("seed", range(4))
def test_squares_that_underflow_are_not_certified(seed):
    """The first batch is one row, so that it shows no scale; many small rows outweigh few large ones."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((20000, 12))
    rows[:, 1] = 4e-20 * rng.choice([-1, 1], 20000)
    rows[:, 2] = 2e-20 * rng.choice([-1, 1], 20000)
    rows[1:21] = 0
    rows[1:21, 0] = 1e-18 * rng.choice([-1, 1], 20)
    rows[1:21, 3] = 5e-19 * rng.choice([-1, 1], 20)
    rows = rows.astype("float32")
    pca = game_pca(1, dtype="float32", random_state=0).partial_fit(rows[:1])
    for i in range(1, 20000, 1000):
        pca.partial_fit(rows[i : i + 1000])
    true = np.linalg.eigh(np.cov(rows.T.astype(float) * 1e19))[1].T[::-1][:1]
    assert (angular_error(pca.components_.astype(float), true) <= pca.certificate_.angle).all()


@pytest.mark.parametrize("size", [1e-19, 10**-19.5, 1e19])
def test_a_first_batch_without_spread_does_not_fix_the_scale(size):
    rng = np.random.default_rng(0)
    rows = (size * rng.standard_normal((2001, 24)) * 0.7 ** np.arange(24)).astype("float32")
    pca = game_pca(4, dtype="float32", random_state=0).partial_fit(rows[:1])
    for i in range(1, 2001, 500):
        pca.partial_fit(rows[i : i + 500])
    wide = rows.astype(float) / size
    true = np.linalg.eigvalsh(np.cov(wide.T))[::-1][:4]
    np.testing.assert_allclose(pca.explained_variance_ / size**2, true, rtol=1e-3)
    assert pca.n_samples_seen_ == 2001
    np.testing.assert_allclose(pca.mean_ / size, wide.mean(axis=0), atol=1e-4)


def test_rows_that_become_small_are_not_certified_beyond_what_is_left_of_them(monkeypatch):
    """Later rows are so much smaller than the first ones that their squares are zero in compiled float32."""
    monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)
    rng = np.random.default_rng(1)
    first = rng.standard_normal((50, 8)) * 0.5 ** np.arange(8)
    later = 1e-20 * rng.standard_normal((3000, 8)) * 0.5 ** np.arange(8)[::-1]
    pca = game_pca(1, dtype="float32", random_state=0, forget=0.9)
    pca.partial_fit(first.astype("float32"))
    for i in range(0, 3000, 500):
        pca.partial_fit(later[i : i + 500].astype("float32"))
    # All but the last rows are forgotten: the first feature has hardly any variance.
    weights = 0.9 ** np.arange(3049, -1, -1.0)
    rows = np.concatenate([first, later]) * 1e20
    centred = rows - weights @ rows / weights.sum()
    true = np.linalg.eigh((centred.T * weights) @ centred)[1].T[::-1][:1]
    assert (angular_error(pca.components_.astype(float), true) <= pca.certificate_.angle).all()


def test_rows_that_become_too_small_for_float32_are_refused_without_compilation():
    """NumPy has numbers below the normal ones, with few digits."""
    rng = np.random.default_rng(1)
    pca = game_pca(1, dtype="float32", random_state=0, forget=0.9)
    pca.partial_fit(rng.standard_normal((50, 8)).astype("float32"))
    small = (1e-20 * rng.standard_normal((3000, 8))).astype("float32")
    with pytest.raises(ValueError, match="too small for float32: multiply the data"):
        pca.partial_fit(small)
    assert pca.n_samples_seen_ == 50
