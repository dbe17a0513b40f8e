"""Sparse rows on the host: products by SciPy, in parts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from eigengame.algorithms import Remembered
from eigengame.game import csr_rows
from eigengame.game.csr_rows import CSRRows, sums_of_rows
from eigengame.game.rows import DenseRows, SampleRows
from eigengame.solver.streaming import random_orthonormal
from tests.tolerance import assert_close, tolerance

M, D, K = 60, 30, 4


def matrix(seed, dtype, m=M):
    """Rows with a few large directions, empty rows, empty columns and a full column."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(m, D)) * np.geomspace(3, 0.3, D)
    values[rng.uniform(size=(m, D)) < 0.7] = 0
    values[::7], values[:, 5], values[:, 2] = 0, 0, 1
    return values.astype(dtype)


def weighted(values, seed):
    """Return rows with random weights, as CSR rows and as a dense array."""
    roots = np.sqrt(np.random.default_rng(seed).uniform(0, 2, len(values))).astype(values.dtype)
    dense = roots[:, None] * values
    return CSRRows(csr_array(dense), roots), dense


@pytest.fixture(params=[False, True], ids=["one part", "parts"])
def parts(request, monkeypatch):
    """Let products run on three threads, with sums of at most eight rows."""
    if request.param:
        monkeypatch.setattr(csr_rows, "blas_threads", lambda: 3)
        monkeypatch.setattr(csr_rows, "SMALL", 0)
        monkeypatch.setattr(csr_rows, "LONGEST", 8)
    return request.param


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_dense_rows(dtype, parts):
    rows, dense = weighted(matrix(0, dtype), 1)
    exact, rng = dense.astype(np.float64), np.random.default_rng(2)
    assert isinstance(rows, SampleRows)
    for players in (rng.normal(size=(K, D)), np.asfortranarray(rng.normal(size=(K, D)))):
        players = players.astype(dtype)
        scores = rows.scores(players)
        assert scores.dtype == dtype
        assert_close(scores, exact @ players.astype(np.float64).T)
        assert_close(rows.directions(scores), scores.astype(np.float64).T @ exact)
    np.testing.assert_array_equal(rows.dense(), dense)
    assert_close(rows.row_squares(), np.sum(exact**2, axis=1))
    sums, squares = rows.column_sums()
    assert_close(sums, rows.roots.astype(np.float64) @ exact)
    assert_close(squares, np.sum(exact**2, axis=0))


@pytest.mark.parametrize("m", [1, 2, 3, 8, 9, 61, 64])
def test_sums_over_rows_are_as_short_as_stated(m, parts):
    rows = CSRRows(csr_array(np.ones((m, D), np.float32)), np.ones(m, np.float32))
    longest, count = sums_of_rows(m)
    found = [part for thread in rows._parts for part in thread]
    assert sum(part.shape[0] for _, part in found) == m
    assert max(part.shape[0] for _, part in found) <= longest
    assert len(found) <= count


def test_rows_without_entries_have_products():
    rows = CSRRows(csr_array((5, D), dtype=np.float32), np.ones(5, np.float32))
    players = np.eye(K, D, dtype=np.float32)
    assert not rows.scores(players).any()
    assert not rows.directions(np.ones((5, K), np.float32)).any()
    assert not rows.row_squares().any()


def test_the_error_of_repeated_rows_stays_within_that_of_short_sums():
    # All additions of a sequential sum are rounded in the same direction, so its error grows with their number: it
    # is 2e-4 here.
    m, value = 2**15, np.float32(1.1)
    rows = CSRRows(csr_array(np.full((m, 1), value)), np.ones(m, np.float32))
    found = float(rows.directions(np.ones((m, 1), np.float32))[0, 0])
    assert abs(found / (m * float(value)) - 1) < 4e-5


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_updates_are_those_of_dense_rows_on_a_device(center, dtype, parts):
    game = Remembered(center=center, space="score")
    with jax.enable_x64(dtype == "float64"):
        start = random_orthonormal(game.players_for(K, D), D, np.dtype(dtype), 0)
        there = game.empty_state(jnp.asarray(start), K)
        here = jax.tree.map(np.asarray, there)
        update = jax.jit(game.update)
        for seed in range(3):
            rows, dense = weighted(matrix(seed, dtype), seed)
            there, _ = update(DenseRows(jnp.asarray(dense), jnp.asarray(rows.roots)), there)
            here, _ = game.update(rows, here)
        one, other = here.memory, jax.tree.map(np.asarray, there.memory)
    assert all(isinstance(leaf, np.ndarray | np.generic) for leaf in jax.tree.leaves(here))
    assert {leaf.dtype for leaf in one} == {np.dtype(dtype)}
    assert_close(one.mean, other.mean)
    assert_close(one.strengths, other.strengths)
    np.testing.assert_allclose(one.players @ one.players.T, np.eye(len(start)), atol=tolerance(dtype))
    # Eigenvectors differ by rounding over the relative gap, which is above 0.01.
    aligned = np.abs(np.sum(one.players[:K] * other.players[:K], axis=1))
    np.testing.assert_allclose(aligned, 1, atol=tolerance(dtype))
