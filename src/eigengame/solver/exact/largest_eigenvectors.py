"""The largest eigenvectors of a symmetric matrix in float64, and a verified bound on its other eigenvalues."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from eigengame.linalg.library import array_namespace
from eigengame.linalg.products import full_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.solver.certificates.rounding import OPERATIONS, UNIT, gamma


def largest_eigenvectors(matrix: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues and their eigenvectors, as rows. Needs x64 mode on a GPU.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Symmetric, in float64; of NumPy, or on a device.
    count : int
        Number of eigenvectors; all of them if there are fewer.
    """
    n = len(matrix)
    if jax.default_backend() != "cpu":
        values, vectors = map(np.asarray, _eigh_there(matrix, min(count, n)))
        return values, vectors
    values, vectors = eigh(matrix, subset_by_index=(max(n - count, 0), n - 1))
    return values[::-1], np.ascontiguousarray(vectors.T[::-1])


def images_and_size(vectors: np.ndarray, matrix: Any) -> tuple[np.ndarray, float]:
    """Return the products (K, n) of vectors with a matrix, and its Frobenius norm. Needs x64 mode on a device."""
    if isinstance(matrix, np.ndarray):
        return vectors @ matrix, float(np.linalg.norm(matrix))
    images, square = jax.device_get(_images_there(vectors, matrix))
    return images, math.sqrt(float(square))


@quick_jit
def _images_there(vectors: jax.Array, matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the products of vectors with a matrix, and the sum of its squares."""
    return full_product(vectors, matrix), jnp.sum(jnp.square(matrix))


def bound_outside(
    matrix: Any,
    values: np.ndarray,
    vectors: np.ndarray,
    residuals: np.ndarray,
    following: float,
    error: float,
    size: float | None = None,
) -> float:
    r"""Return a bound on the largest eigenvalue outside the span of some eigenvectors. Needs x64 mode on a GPU.

    A Cholesky factor of $\mu I - (A - \sum_i\lambda_i v_iv_i^\top)$ exists only if $\mu$ is at least the largest
    eigenvalue of the rest, up to rounding. So no other eigenvalue has to be computed.

    Parameters
    ----------
    matrix : array of shape (n, n)
        $A$, symmetric.
    values : array of shape (K,)
        $\lambda_i$.
    vectors : array of shape (K, n)
        $v_i$, orthonormal up to rounding.
    residuals : array of shape (K,)
        Bounds on $\|Av_i - \lambda_iv_i\|$.
    following : float
        The next eigenvalue, approximately.
    error : float
        Bound on the spectral norm of the error of the matrix.
    size : float, optional
        Frobenius norm of the matrix, if it is known.
    """
    n, count = len(matrix), len(values)
    if size is None:
        size = float(np.linalg.norm(matrix))
    uneven = float(np.linalg.norm(vectors @ vectors.T - np.eye(count))) + count * gamma(n)
    apart = 3 * float(np.linalg.norm(residuals)) + 2 * uneven * float(values.max(initial=0))
    apart += gamma(count + OPERATIONS) * (float(values.sum()) + size)
    slack = max(apart + error + UNIT * size, np.finfo(float).tiny)
    exists = _factor_on_host if jax.default_backend() == "cpu" else _factor_there
    while True:
        bound = max(following, 0.0) + slack
        if exists(matrix, values, vectors, bound):
            # Twice: the trace of the rest may be negative, as that of a matrix in float32 whose error was measured.
            return bound * (1 + 2 * n * gamma(n + 2)) + apart + error
        slack *= 4


def _factor_on_host(
    matrix: np.ndarray, values: np.ndarray, vectors: np.ndarray, bound: float
) -> bool:
    """Return whether a matrix without some eigenvectors is below a bound: whether a Cholesky factor exists."""
    try:
        cholesky(_below(matrix, values, vectors, bound), check_finite=False, overwrite_a=True)
    except LinAlgError:
        return False
    return True


@quick_jit
def _factor_there(
    matrix: jax.Array, values: jax.Array, vectors: jax.Array, bound: float
) -> jax.Array:
    """Version of `_factor_on_host` on the device, where the factor is NaN if there is none."""
    return jnp.isfinite(jnp.linalg.cholesky(_below(matrix, values, vectors, bound))).all()


def _below(matrix: Any, values: Any, vectors: Any, bound: float) -> Any:
    """Return how far a matrix without some eigenvectors is below a bound."""
    xp = array_namespace(matrix)
    rest = matrix - full_product(vectors.T * values[None, :], vectors)
    return bound * xp.eye(len(matrix), dtype=matrix.dtype) - rest


@partial(quick_jit, static_argnums=1)
def _eigh_there(matrix: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Version of `largest_eigenvectors` on the device. Only the vectors that are asked for are transferred."""
    values, vectors = jnp.linalg.eigh(matrix)
    return values[::-1][:count], vectors[:, ::-1][:, :count].T
