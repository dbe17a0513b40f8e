"""Eigenvalues and eigenvectors of small symmetric matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def symmetric_eigh(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the eigenvalues of a symmetric matrix in ascending order, and the eigenvectors as columns.

    LAPACK sometimes returned NaN for float32 matrices with a few large entries before noise: XLA flushes subnormal
    numbers to zero, and divide and conquer then divides by zero. Two measures avoid that. The matrix is reversed:
    with large entries last, the reduction to tridiagonal form is most accurate. And entries far below the rounding
    of the largest one are set to zero, which changes eigenvalues by less than rounding does.
    """
    matrix = ((matrix + matrix.T) / 2)[::-1, ::-1]
    noise = jnp.finfo(matrix.dtype).eps ** 1.5 * jnp.max(jnp.abs(matrix))
    values, vectors = jnp.linalg.eigh(jnp.where(jnp.abs(matrix) <= noise, 0, matrix))
    return values, vectors[::-1]
