"""Dense rows on the host: products by NumPy, in parts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame._system.reused_memory import ReusedMemory
from eigengame.game import host_rows
from eigengame.game.host_rows import HostRows, converted, longest_host_sum
from eigengame.game.krylov_round import krylov_round
from eigengame.game.memory import Memory, RememberedRows
from eigengame.game.rows import DenseRows, SampleRows
from eigengame.linalg.random_directions import random_orthonormal
from eigengame.metrics import angular_error
from tests.tolerance import assert_close

M, D, K = 61, 30, 4


def weighted(seed, dtype, m=M):
    """Return rows with random weights, and the same as an array in float64."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(m, D)) * np.geomspace(3, 1e-3, D) + 0.1
    roots = np.sqrt(rng.uniform(0, 2, m)).astype(dtype)
    dense = (roots[:, None] * values).astype(dtype)
    return HostRows(dense, roots), dense.astype(np.float64)


@pytest.fixture(params=[False, True], ids=["one part", "parts"])
def parts(request, monkeypatch):
    """Let products run on three threads, with sums of few rows."""
    if request.param:
        monkeypatch.setattr(host_rows, "blas_threads", lambda: 3)
        monkeypatch.setattr(host_rows, "SMALL", 0)
        monkeypatch.setattr(host_rows, "LONGEST", 8)
        monkeypatch.setattr(host_rows, "FEW", 5)
    return request.param


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_an_array(dtype, parts):
    rows, exact = weighted(0, dtype)
    players = np.random.default_rng(2).normal(size=(K, D)).astype(dtype)
    assert isinstance(rows, SampleRows)
    scores = rows.scores(players)
    assert scores.dtype == rows.directions(scores).dtype == dtype
    assert_close(scores, exact @ players.astype(np.float64).T)
    wide = scores.astype(np.float64)
    assert_close(rows.directions(scores), wide.T @ exact)
    assert_close(rows.gram(scores, scores[:, :2]), wide.T @ wide[:, :2])
    np.testing.assert_array_equal(rows.dense(), exact)
    assert_close(rows.row_squares(), np.sum(exact**2, axis=1))
    sums, squares = rows.column_sums()
    # Added in the precision of the rows, and returned in float64.
    rounding = 1e-6 if dtype == "float32" else 1e-14
    for found, true in ((sums, rows.roots @ exact), (squares, np.sum(exact**2, axis=0))):
        np.testing.assert_allclose(found, true, rtol=0, atol=rounding * np.abs(true).max())


def test_centred_scores_are_those_of_centred_rows(parts):
    rows, exact = weighted(3, "float64")
    players = np.random.default_rng(4).normal(size=(K, D))
    unit = rows.constant()
    share = unit / np.sum(unit**2)
    mean = (share.T @ exact)[0]
    centred = rows.centre(rows.scores(players), unit, share)
    assert_close(centred, (exact - unit * mean) @ players.T)


@pytest.mark.parametrize("m", [1, 2, 8, 9, 61])
def test_sums_in_the_precision_of_the_rows_are_as_short_as_stated(m, parts, monkeypatch):
    lengths = []

    class Noting(np.ndarray):
        """Notes the length of each sum over rows."""

        def __getitem__(self, places):
            found = super().__getitem__(places)
            if isinstance(places, slice):
                lengths.append(len(found))
            return found

    rows = HostRows(np.ones((m, D), np.float32).view(Noting), np.ones(m, np.float32))
    rows.directions(np.ones((m, K), np.float32))
    assert sum(lengths) == m
    # Each sum of a chunk, and of a thread, is one more addition.
    threads = host_rows.blas_threads() if parts else 1
    further = len(lengths) + threads if m > host_rows.LONGEST else 0
    assert max(lengths) + further <= longest_host_sum(m)
    before = len(lengths)
    scores = np.ones((m, K), np.float32).view(Noting)
    rows.gram(scores, scores)
    assert max(lengths[before:]) <= host_rows.LONGEST


def test_equal_numbers_are_added_without_drift():
    # Rounded in the same direction in each step, a sum in float32 of 2^20 numbers would be off by 1e-3.
    m = 2**20
    rows = HostRows(np.full((m, 1), 0.1, np.float32), np.ones(m, np.float32))
    found = rows.directions(np.ones((m, 1), np.float32))
    assert abs(found[0, 0] / (m * float(np.float32(0.1))) - 1) < 2e-6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("center", [False, True])
def test_a_round_is_that_of_jax(dtype, center, parts):
    rows, exact = weighted(5, dtype)
    players = random_orthonormal(K, D, np.dtype(dtype), 1)
    strengths = np.array([9.0, 4.0, 2.0, 1.0], dtype)
    mean, weight = np.zeros(D, dtype), np.asarray(7, dtype)
    here = RememberedRows.of(rows, Memory(players, strengths, mean, weight), center=center)
    dense = DenseRows(jnp.asarray(exact, dtype), jnp.asarray(rows.roots))
    memory = Memory(*map(jnp.asarray, (players, strengths, mean, weight)))
    there = RememberedRows.of(dense, memory, center=center)
    moved, _, values = krylov_round(here, players, here.scores(players), strengths)
    other, _, expected = krylov_round(
        there, jnp.asarray(players), there.scores(jnp.asarray(players)), jnp.asarray(strengths)
    )
    assert isinstance(moved, np.ndarray)
    assert isinstance(other, jax.Array)
    assert_close(values, expected)
    assert angular_error(moved, np.asarray(other)).max() < (1e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("given", ["uint8", "float64", "float32 in columns"])
def test_numbers_are_converted_to_the_precision_and_order_of_the_rows(given, parts):
    values = np.random.default_rng(6).integers(0, 255, (M, D))
    dtype, *order = given.split(" in ")
    values = values.astype(dtype, order="F" if order else "C")
    found = converted(values, np.dtype("float32"), ReusedMemory())
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, values.astype(np.float32))


def test_numbers_that_fit_are_not_copied():
    values = np.ones((M, D), np.float32)
    assert converted(values, np.dtype("float32"), ReusedMemory()) is values
