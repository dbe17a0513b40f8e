r"""The largest eigenvectors of symmetric matrices by subspace iteration with Chebyshev filters.

A polynomial of the matrix that is small on $[0, b]$ and grows quickly beyond enlarges the wanted eigenvectors
(Zhou, Saad, Tiago and Chelikowsky, 2006). A filter takes products with the matrix only, and the Rayleigh-Ritz step
after it one small eigenproblem for each matrix. GPUs solve these slowly, one after another, so the host does it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.orthonormal import unit_rows
from eigengame.linalg.quick_jit import quick_jit

MOST_FILTERS = 24
"""Largest number of filters."""

MOST_DEGREE = 24
"""Largest degree of a filter."""

SPREAD = 1e4
"""Largest ratio by which a filter enlarges the first eigenvector more than the last wanted one."""

GOAL = 1e-3
"""Residual of a wanted eigenvector, divided by its distance from the last Ritz value, at which iteration ends."""


def leading_eigenvectors(
    matrices: jax.Array, start: np.ndarray, k: int
) -> tuple[np.ndarray, jax.Array]:
    """Return Ritz values (L, K), largest first, and Ritz vectors (L, K, d), the first k converged if possible.

    Parameters
    ----------
    matrices : array of shape (L, d, d)
        Symmetric and positive semi-definite, up to rounding.
    start : array of shape (K, d)
        Orthonormal, for example at random.
    k : int
        Number of wanted eigenvectors of each matrix.
    """
    shape = (len(matrices), *start.shape)
    vectors = jnp.broadcast_to(jnp.asarray(start, matrices.dtype), shape)
    images, small = _images(matrices, vectors)
    with ThreadPoolExecutor() as pool:
        for filters in range(MOST_FILTERS + 1):
            values, turn = _small_eigenproblems(np.asarray(small, np.float64), pool)
            given = values.astype(matrices.dtype)
            vectors, images, error = _rotated(
                vectors, images, turn.astype(matrices.dtype), given, k
            )
            if filters == MOST_FILTERS or float(np.max(error)) <= GOAL:
                break
            filtered = _filtered(matrices, vectors, images, given, _degree(values, k))
            vectors = _by_cholesky(filtered)
            images, small = _images(matrices, vectors)
            if not np.isfinite(
                np.asarray(small)
            ).all():  # nearly dependent rows have no Cholesky factor
                vectors = _by_qr(filtered)
                images, small = _images(matrices, vectors)
    return values, vectors


def _small_eigenproblems(
    matrices: np.ndarray, pool: ThreadPoolExecutor
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues (L, K), largest first, and eigenvectors as rows (L, K, K)."""
    found = list(pool.map(lambda one: np.linalg.eigh((one + one.T) / 2), matrices))
    values = np.stack([one[0][::-1] for one in found])
    return values, np.stack([one[1].T[::-1] for one in found])


def _halves(values: np.ndarray) -> np.ndarray:
    """Return half of the upper end of the damped interval of each matrix, shape (L,)."""
    least = np.finfo(np.float32).eps * values[:, 0]
    half = np.maximum(values[:, -1], least) / 2
    return np.where(half > 0, half, 1)


def _degree(values: np.ndarray, k: int) -> int:
    """Return a degree for which no filter enlarges the first eigenvector too much."""
    half = _halves(values)
    first, last = (np.arccosh(np.maximum((values[:, i] - half) / half, 1.0)) for i in (0, k - 1))
    return int(np.clip(np.log(SPREAD) / np.maximum((first - last).max(), 1e-6), 2, MOST_DEGREE))


def _multiply(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return the product of each pair of matrices in full precision."""
    return jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)


@quick_jit
def _images(matrices: jax.Array, vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the products of vectors with their matrices (L, K, d), and their inner products (L, K, K)."""
    images = _multiply(vectors, matrices)
    return images, _multiply(images, vectors.mT)


@partial(quick_jit, static_argnums=4)
def _rotated(
    vectors: jax.Array, images: jax.Array, turn: jax.Array, values: jax.Array, k: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return Ritz vectors, their images, and the largest error of the first k for each matrix (L,)."""
    vectors, images = _multiply(turn, vectors), _multiply(turn, images)
    residual = jnp.linalg.norm(images - values[..., None] * vectors, axis=-1)[:, :k]
    # A residual at rounding is converged, also where eigenvalues are equal.
    floor = 8 * jnp.finfo(values.dtype).eps * values[:, :1]
    gap = jnp.maximum(values[:, :k] - values[:, -1:], jnp.finfo(values.dtype).tiny)
    return vectors, images, jnp.max(jnp.where(residual > floor, residual / gap, 0), axis=1)


@quick_jit
def _filtered(
    matrices: jax.Array, vectors: jax.Array, images: jax.Array, values: jax.Array, degree: int
) -> jax.Array:
    """Return a polynomial of each matrix times its Ritz vectors, damped up to the last Ritz value."""
    half = jnp.maximum(values[:, -1], jnp.finfo(values.dtype).eps * values[:, 0]) / 2
    half = jnp.where(half > 0, half, 1)[:, None, None]
    largest = jnp.maximum(values[:, 0, None, None], 2.001 * half)
    # Scaled so that the first eigenvector keeps its length.
    first = half / (largest - half)
    one = (images - half * vectors) * (first / half)

    def further(_: Any, carry: tuple[jax.Array, jax.Array, jax.Array]) -> Any:
        before, last, ratio = carry
        after = 1 / (2 / first - ratio)
        new = (_multiply(last, matrices) - half * last) * (2 * after / half)
        return last, new - ratio * after * before, after

    return jax.vmap(unit_rows)(jax.lax.fori_loop(1, degree, further, (vectors, one, first))[1])


@quick_jit
def _by_cholesky(rows: jax.Array) -> jax.Array:
    """Orthonormalise unit rows (L, K, d) by two Cholesky factors of their overlaps; NaN if they are dependent."""
    for _ in range(2):
        factor = jnp.linalg.cholesky(_multiply(rows, rows.mT))
        rows = jax.lax.linalg.triangular_solve(factor, rows, left_side=True, lower=True)
    return rows


@quick_jit
def _by_qr(rows: jax.Array) -> jax.Array:
    """Orthonormalise rows (L, K, d) by QR factorisations."""
    return jnp.linalg.qr(rows.mT)[0].mT
