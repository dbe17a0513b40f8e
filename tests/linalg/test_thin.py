"""Singular vectors of a few wide rows, compared with those of NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.linalg.thin import top_singular_vectors

RNG = np.random.default_rng(0)


def nearly_parallel(d=40):
    """Two sets of orthonormal rows that differ by 1e-5, and one more row."""
    one = np.linalg.qr(RNG.normal(size=(d, 4)))[0].T
    other = np.linalg.qr((one + 1e-5 * RNG.normal(size=one.shape)).T)[0].T
    return [one, other, RNG.normal(size=(1, d))]


@pytest.mark.parametrize("chunk", [None, 11, 5])
@pytest.mark.parametrize("xp", [np, jnp])
def test_vectors_and_values_are_those_of_the_whole_matrix(xp, chunk):
    rows, sizes = nearly_parallel(), np.geomspace(1, 1e-3, 9)
    exact = np.linalg.svd(sizes[:, None] * np.concatenate(rows), full_matrices=False)
    vectors, values = top_singular_vectors(
        [*map(xp.asarray, rows)], xp.asarray(sizes), 6, xp, chunk
    )
    np.testing.assert_allclose(values, exact[1][:6], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(vectors * exact[2][:6], axis=1)), 1, rtol=1e-9)


@pytest.mark.parametrize("d", [5, 40])
def test_vectors_are_orthonormal_where_values_are_zero(d):
    rows = [np.eye(4, d), np.eye(4, d), np.zeros((1, d))]
    sizes = np.array([3.0, 0, 0, 0, 2, 0, 0, 0, 1])
    vectors, values = top_singular_vectors(rows, sizes, 4, np)
    np.testing.assert_allclose(values, [np.sqrt(13), 0, 0, 0], atol=1e-14)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-14)


def test_the_device_resolves_nearly_parallel_rows_in_float32():
    rows = [part.astype("float32") for part in nearly_parallel()]
    sizes = np.geomspace(1, 0.1, 9)
    exact = np.linalg.svd(sizes[:, None] * np.concatenate(rows), full_matrices=False)
    found = jax.jit(lambda *parts: top_singular_vectors(parts[:-1], parts[-1], 4))
    vectors, values = found(*rows, sizes.astype("float32"))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(values, exact[1][:4], rtol=1e-6)
    along = np.sum(np.asarray(vectors, np.float64) * exact[2][:4], axis=1)
    # The angle, of the size of float32's rounding over the gap.
    assert np.sqrt(1 - np.minimum(along**2, 1)).max() < 1e-3
