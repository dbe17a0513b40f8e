"""Rows in two parts of bfloat16: their products are those of NumPy in float64, to about 2^-17."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.game.memory import Memory, RememberedRows
from eigengame.game.rows import DenseRows
from eigengame.game.two_part_rows import UNIT, TwoPartRows, parts_of
from eigengame.linalg.products import LONGEST_CHUNK
from tests.tolerance import assert_close

M, D, K = 4099, 24, 5
"""A prime number of rows, which are two chunks."""

PART = 2.0**-8
"""Unit roundoff of bfloat16."""


def drawn(dtype="float32", m=M, mean=0.0):
    """Rows (m, D) of this dtype, orthonormal players (K, D) and scores (m, K)."""
    rng = np.random.default_rng(0)
    rows = jnp.asarray(mean + rng.normal(size=(m, D)), dtype)
    players = np.linalg.qr(rng.normal(size=(D, K)))[0].T
    return rows, jnp.asarray(players, "float32"), jnp.asarray(rng.normal(size=(m, K)), "float32")


@jax.jit
def products(rows, players, scores):
    """The parts of the rows, the scores of the players, and the directions and inner products of other scores."""
    split = TwoPartRows.of(rows)
    padded = jnp.pad(scores, [(0, len(split.roots) - len(scores)), (0, 0)])
    return split, split.scores(players), split.directions(padded), split.gram(padded, padded)


def assert_accurate(found, left, right):
    """Compare a product with `left @ right` in float64."""
    error = np.abs(np.asarray(found, np.float64) - left @ right)
    # Three parts of each term are missing: the rest of either factor, and the product of the second parts.
    assert (error <= 4 * PART**2 * (np.abs(left) @ np.abs(right))).all()
    # Errors of different terms are independent: together they are far smaller.
    typical = np.sqrt(np.square(left) @ np.square(right))
    assert np.sqrt(np.mean(np.square(error / typical))) < 2.0**-17


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_products_have_the_stated_accuracy(dtype):
    rows, players, scores = drawn(dtype)
    split, found, directions, gram = products(DenseRows(rows), players, scores)
    wide, v, y = (np.asarray(one).astype(np.float64) for one in (rows, players, scores))
    assert_accurate(found[:M], wide, v.T)
    assert_accurate(directions, y.T, wide)
    assert_close(gram, np.float32(y.T @ y))
    assert found.dtype == directions.dtype == gram.dtype == np.float32
    assert split.width == D


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_two_parts_hold_sixteen_bits_of_a_number(dtype):
    rows = drawn(dtype)[0]
    split, *_ = products(DenseRows(rows), *drawn()[1:])
    wide = np.asarray(rows).astype(np.float64)
    kept = np.asarray(split.dense()[:M], np.float64)
    assert (split.low is None) == (dtype == "bfloat16")
    if dtype == "float32":
        assert (np.abs(kept - wide) <= PART**2 * np.abs(wide)).all()
    else:
        np.testing.assert_array_equal(kept, wide)  # at most eleven bits


def test_numbers_of_any_size_are_split():
    numbers = np.float32([0, 1, -1, 1 + 2**-20, 1e-30, -1e30, 2.0**-100, np.pi])
    high, low = (np.asarray(one).astype(np.float64) for one in jax.jit(parts_of)(numbers))
    assert (np.abs(high - numbers) <= PART * np.abs(numbers)).all()
    assert (np.abs(high + low - numbers) <= PART**2 * np.abs(numbers)).all()


@pytest.mark.parametrize("m", [1, UNIT, LONGEST_CHUNK + 3])
def test_rows_are_padded_to_equal_chunks(m):
    split, found, *_ = products(DenseRows(drawn(m=m)[0]), *drawn(m=m)[1:])
    count = -(-m // LONGEST_CHUNK)
    assert len(split.roots) % (UNIT * count) == 0
    assert m <= len(split.roots) < m + UNIT * count
    assert split.high.shape == split.low.shape == (len(split.roots), D)
    np.testing.assert_array_equal(split.constant()[:, 0], np.arange(len(split.roots)) < m)
    np.testing.assert_array_equal(found[m:], 0)


def combined(rows, players):
    """Mean, weight, and products with M of the rows about their mean, as the remembered game uses them."""
    zero = jnp.zeros((), "float32")
    memory = Memory(players, jnp.zeros(K, "float32"), jnp.zeros(D, "float32"), zero)
    new = RememberedRows.of(TwoPartRows.of(rows), memory, center=True)
    scores = new.scores(players)
    return *new.mean_and_weight(), new.directions(scores), new.gram(scores, scores)


def test_rows_of_padding_change_nothing():
    rows, players, _ = drawn(m=37, mean=2.0)
    alone = jax.jit(combined)(DenseRows(rows), players)
    # As many as the parts have in any case, and more of them.
    for missing in (UNIT - 37, 100):
        roots = jnp.pad(jnp.ones(37, "float32"), (0, missing))
        padded = DenseRows(jnp.pad(rows, [(0, missing), (0, 0)]), roots)
        for one, other in zip(alone, jax.jit(combined)(padded, players), strict=True):
            assert_close(one, other)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weighted_rows_have_the_products_of_their_weights(dtype):
    rows, players, _ = drawn(dtype, mean=0.25)
    weights = np.random.default_rng(1).integers(0, 4, M).astype(np.float64)
    given = jnp.asarray(rows, "float32"), jnp.asarray(weights, "float32")
    mean, weight, directions, gram = jax.jit(combined)(DenseRows.weighted(*given), players)
    wide, v = (np.asarray(one).astype(np.float64) for one in (rows, players))
    centre = weights @ wide / weights.sum()
    scatter = (wide - centre).T @ ((wide - centre) * weights[:, None])
    assert weight == weights.sum()
    np.testing.assert_allclose(mean, centre, atol=2.0**-17)
    # Errors of different rows are independent, so those of both products together are smaller.
    size = 2.0**-17 * np.linalg.norm(scatter, 2)
    np.testing.assert_allclose(directions, v @ scatter, atol=size)
    np.testing.assert_allclose(gram, v @ scatter @ v.T, atol=size)
