import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.game import random_players
from eigengame.linalg import orthonormal
from eigengame.linalg.orthonormal import (
    orthonormalise,
    orthonormalise_nearly,
    reorthonormalise,
    reorthonormalise_scores,
    safe_norms,
    whiten,
    whiten_nearly,
)
from tests.tolerance import assert_close


def test_safe_norms_do_not_underflow_nor_overflow():
    scales = np.array([1e-30, 1e-10, 1.0, 1e10, 1e30], "float32")
    lengths = safe_norms(jnp.asarray(scales)[:, None] * jnp.ones((5, 4), "float32"))
    assert_close(lengths / scales, np.full(5, 2.0))
    np.testing.assert_array_equal(safe_norms(jnp.zeros((2, 4))), 0)


def test_orthonormalise_keeps_span_order_and_sign(dtype):
    players = random_players(2, 4, 9, dtype)
    q = orthonormalise(players)
    assert_close(q @ q.T, np.eye(4))
    # Row i of players is a combination of the first i + 1 rows of q, with a positive last coefficient.
    coordinates = players @ q.T
    assert_close(1 + jnp.triu(coordinates, 1), np.ones((4, 4)))
    assert (jnp.diag(coordinates) > 0).all()


WIDE = (5, orthonormal.WIDE)


def wide_rows(kind):
    """Return five wide rows: independent, correlated, of very different sizes, or nearly dependent."""
    rows = np.random.default_rng(3).normal(size=WIDE)
    if kind == "correlated":
        rows = rows + 3 * rows[:1]
    if kind == "of all sizes":
        rows = rows * np.array([1e-15, 1e15, 1.0, -1e-10, 1e10])[:, None]
    if kind == "nearly parallel":
        rows[3] = rows[1] + 1e-4 * rows[3]
    if kind == "parallel":
        rows[3] = 2 * rows[1]
    if kind == "zero":
        rows[2] = 0
    return rows


@pytest.mark.parametrize("kind", ["independent", "correlated", "of all sizes"])
def test_wide_players_are_orthonormalised_by_products_as_accurately_as_by_qr(dtype, kind):
    rows = wide_rows(kind)
    q, r = np.linalg.qr(rows.T)
    found = orthonormalise(jnp.asarray(rows, dtype))
    assert found.dtype == dtype
    assert_close(np.asarray(found) @ np.asarray(found).T, np.eye(5))
    assert_close(found, (q * np.sign(np.diag(r))).T)
    # Products were used and not QR: the last digits differ.
    assert (found != orthonormal._by_qr(jnp.asarray(rows, dtype))).any()


@pytest.mark.parametrize("kind", ["nearly parallel", "parallel", "zero"])
def test_wide_players_that_are_nearly_dependent_use_qr(dtype, kind):
    rows = jnp.asarray(wide_rows(kind), dtype)
    found = np.asarray(orthonormalise(rows))
    np.testing.assert_array_equal(found, orthonormal._by_qr(rows))
    assert_close(found @ found.T, np.eye(5))


def test_reorthonormalise_squares_the_error_and_combines_scores_alike():
    players = orthonormalise(random_players(0, 4, 9, "float64")) + 1e-3 * random_players(
        1, 4, 9, "float64"
    )
    error = np.abs(players @ players.T - np.eye(4)).max()
    corrected, scores = reorthonormalise_scores(players, players.T)
    np.testing.assert_array_equal(corrected, reorthonormalise(players))
    assert np.abs(corrected @ corrected.T - np.eye(4)).max() < 4 * error**2
    assert_close(scores, corrected.T)


def test_many_singular_overlaps_are_whitened_under_vmap():
    """Under vmap, a minimum over a factor of NaN may lose the NaN that marks a missing factor."""
    overlaps = jnp.ones((300, 16, 16), jnp.float32)
    basis, empty, apart = jax.jit(jax.vmap(whiten))(overlaps)
    assert not np.asarray(apart).any()
    assert np.isfinite(basis).all()
    assert (np.asarray(empty).sum(axis=1) == 15).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_that_are_nearly_orthonormal_become_so(dtype):
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((40, 6)))[0].T
    vectors = (vectors + 0.01 * rng.standard_normal((6, 40))).astype(dtype)
    vectors[3] = 0
    found = np.asarray(whiten_nearly(jnp.asarray(vectors @ vectors.T))) @ vectors
    expected = np.diag([1.0, 1, 1, 0, 1, 1])
    close = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(found @ found.T, expected, atol=close)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["random", "graded", "parallel"])
def test_rows_become_nearly_orthonormal_by_shifted_factors(dtype, kind):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 200))
    if kind == "graded":
        rows *= 10.0 ** -np.arange(12)[:, None]
    if kind == "parallel":
        rows = rows[:1] + 1e-2 * rows
    with jax.enable_x64(True):
        given = jnp.asarray(rows, dtype)
        found = np.asarray(orthonormalise_nearly(given), np.float64)
        exact = np.asarray(orthonormalise(given), np.float64)
    assert np.abs(found @ found.T - np.eye(12)).max() < 1e-3
    # The same spans of leading rows.
    for count in range(1, 13):
        across = np.linalg.svd(found[:count] @ exact[:count].T, compute_uv=False)
        assert across.min() > 1 - 1e-3


def test_zero_rows_and_dependent_rows_stay_finite():
    rows = np.random.default_rng(0).normal(size=(6, 50)).astype("float32")
    rows[2], rows[4] = 0, rows[1]
    found = np.asarray(orthonormalise_nearly(jnp.asarray(rows)))
    assert np.isfinite(found).all()
    assert (found[2] == 0).all()
    others = found[[0, 1, 3, 5]]
    np.testing.assert_allclose(others @ others.T, np.eye(4), atol=1e-3)
