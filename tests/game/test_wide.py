"""Both touches of width d: the kernels, run by the interpreter, against plain products and against float64."""

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.game import wide, wide_kernels

ROWS = 16


def arrays(players, vector, d, seed=0):
    rng = np.random.default_rng(seed)
    parts = [jnp.asarray(rng.normal(size=(players, d)), jnp.float32)]
    if vector:
        parts.append(jnp.asarray(rng.normal(size=(1, d)), jnp.float32))
    return parts, jnp.asarray(rng.normal(size=(ROWS, d)), jnp.bfloat16)


# Whole pieces; a piece shared with the mean; fewer players than a piece, and columns beyond the last tile.
SHAPES = [(32, False, 256), (47, True, 256), (5, True, 300)]


@pytest.mark.parametrize(("players", "vector", "d"), SHAPES)
def test_kernels_give_the_products_that_float64_gives(players, vector, d):
    parts, rows = arrays(players, vector, d)
    square, across = wide_kernels.inner_products(parts, rows, interpret=True)
    x, w = np.asarray(rows, np.float64), np.concatenate([np.asarray(p, np.float64) for p in parts])
    # Two parts of 8 bits: products are exact to 2^-17 of what is multiplied.
    tolerance = 2**-17 * np.sqrt(d) * 4
    np.testing.assert_allclose(square, x @ x.T, atol=tolerance)
    np.testing.assert_allclose(across, x @ w.T, atol=tolerance)


@pytest.mark.parametrize(("players", "vector", "d"), SHAPES)
def test_kernels_combine_as_float64_does(players, vector, d):
    parts, rows = arrays(players, vector, d, seed=1)
    k = sum(map(len, parts))
    rng = np.random.default_rng(2)
    turn, fresh = rng.normal(size=(k, k)), rng.normal(size=(k, ROWS))
    given = jnp.asarray(turn, jnp.float32), jnp.asarray(fresh, jnp.float32)
    moved = wide_kernels.combined(*given, parts, rows, interpret=True)
    x, w = np.asarray(rows, np.float64), np.concatenate([np.asarray(p, np.float64) for p in parts])
    assert [part.shape for part in moved] == [part.shape for part in parts]
    # Two parts of 8 bits: products are exact to 2^-17 of what is multiplied.
    tolerance = 2**-17 * np.sqrt(k + ROWS) * 16
    np.testing.assert_allclose(np.concatenate(moved), turn @ w + fresh @ x, atol=tolerance)


def test_plain_products_are_those_of_float64():
    parts, rows = arrays(5, True, 300)
    x, w = np.asarray(rows, np.float64), np.concatenate([np.asarray(p, np.float64) for p in parts])
    square, across = wide.inner_products(parts, rows)
    np.testing.assert_allclose(square, x @ x.T, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(across, x @ w.T, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(wide.overlaps_of(parts), w @ w.T, rtol=1e-5, atol=1e-4)


# Features that chunks divide, and one more.
@pytest.mark.parametrize("d", [2**19, 2**19 + 1])
def test_lengths_are_measured_to_rounding_over_hundreds_of_thousands_of_features(d):
    players = jnp.ones((1, d), jnp.float32) * 0.1
    true = np.sum(np.square(np.asarray(players, np.float64)))
    np.testing.assert_allclose(wide.overlaps_of([players]), [[true]], rtol=1e-6)


def test_kernels_are_for_gpus_and_shapes_they_take():
    parts, rows = arrays(5, True, 300)
    assert not wide.kernels_fit(parts, rows)
