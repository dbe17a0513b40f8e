"""Sparse rows on the host: products by SciPy, in parts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from eigengame.algorithms import Remembered
from eigengame.game import csr_rows
from eigengame.game.csr_rows import CSRRows, sums_of_rows
from eigengame.game.krylov_round import krylov_round
from eigengame.game.memory import Memory, RememberedRows
from eigengame.game.rows import DenseRows, SampleRows
from eigengame.linalg.random_directions import random_orthonormal
from eigengame.metrics import angular_error, true_components
from tests.tolerance import assert_close

M, D, K = 60, 30, 4


def matrix(seed, dtype, m=M):
    """Rows with a few large directions, empty rows, empty columns and a full column."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(m, D)) * np.geomspace(3, 1e-3, D)
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
    # Many additions of a sequential sum are rounded in the same direction, so its error grows with their number: it
    # is 1e-4 here.
    m, value = 2**15, np.float32(1.1)
    rows = CSRRows(csr_array(np.full((m, 1), value)), np.ones(m, np.float32))
    found = float(rows.directions(np.ones((m, 1), np.float32))[0, 0])
    assert abs(found / (m * float(value)) - 1) < 6e-5


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_round_is_that_of_dense_rows_on_a_device(center, dtype, parts):
    with jax.enable_x64(dtype == "float64"):
        rows, dense = weighted(matrix(0, dtype), 0)
        there = memory_of(dtype)
        on_device = RememberedRows.of(
            DenseRows(jnp.asarray(dense), jnp.asarray(rows.roots)), there, center=center
        )
        here = RememberedRows.of(rows, jax.tree.map(np.asarray, there), center=center)
        one, other = map(_round, (here, on_device))
    for found, expected in zip(one, other, strict=True):
        assert isinstance(found, np.ndarray)
        assert found.dtype == dtype
        # The part outside the players is divided by its length, of at least 0.03 of a unit direction, twice.
        assert_close(np.abs(found), np.abs(expected), factor=100)
    assert_close(here.mean_and_weight()[0], on_device.mean_and_weight()[0])


def memory_of(dtype):
    """Return a memory of K players."""
    players = random_orthonormal(K, D, np.dtype(dtype), 0)
    strengths, mean = np.geomspace(9, 1, K), np.linspace(0, 1, D)
    return Memory(*(jnp.asarray(np.asarray(x, dtype)) for x in (players, strengths, mean, 50.0)))


def _round(new):
    """Return players and strengths after one round on a batch with a memory."""
    memory = new.memory
    players, _, strengths = krylov_round(
        new, memory.players, new.scores(memory.players), memory.strengths
    )
    return players, strengths


@pytest.mark.parametrize("center", [False, True])
def test_updates_find_the_components_of_all_rows(center, parts):
    game, batches = Remembered(center=center), [weighted(matrix(i, "float32"), i) for i in range(9)]
    start = game.empty_state(random_orthonormal(game.players_for(K, D), D, np.float32, 0), K)
    state = jax.tree.map(np.asarray, start)
    for rows, _ in batches:
        state, _ = game.update(rows, state)
    every = np.concatenate([dense for _, dense in batches]).astype(np.float64)
    roots = np.concatenate([rows.roots for rows, _ in batches]).astype(np.float64)
    if center:
        mean = roots @ every / (roots @ roots)
        np.testing.assert_allclose(state.memory.mean, mean, atol=1e-5)
        every = every - roots[:, None] * mean
    true = true_components(every, K)[1]
    # What the extra players forget of the other directions is a small part of the first components.
    assert angular_error(game.components(state).astype(np.float64), true).max() < 0.01
    assert all(isinstance(leaf, np.ndarray | np.generic) for leaf in jax.tree.leaves(state))


def test_dependent_directions_are_left_out():
    # Rows of rank 2: of the directions beside four players only one or two are left, and Cholesky has no factor.
    rng = np.random.default_rng(0)
    dense = (rng.normal(size=(M, 2)) @ rng.normal(size=(2, D))).astype(np.float32)
    rows, game = CSRRows(csr_array(dense), np.ones(M, np.float32)), Remembered()
    start = game.empty_state(random_orthonormal(game.players_for(K, D), D, np.float32, 0), K)
    state, _ = game.update(rows, jax.tree.map(np.asarray, start))
    players = state.memory.players
    np.testing.assert_allclose(players @ players.T, np.eye(len(players)), atol=1e-4)
    values = true_components(dense.astype(np.float64), 2)[0]
    np.testing.assert_allclose(state.memory.strengths[:2], values, rtol=1e-4)
    assert (state.memory.strengths[2:] < 1e-4 * values[0]).all()
