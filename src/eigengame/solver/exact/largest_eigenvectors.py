"""The largest eigenvectors of a symmetric matrix in float64, and a verified bound on its other eigenvalues."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from eigengame.solver.certificates.rounding import OPERATIONS, UNIT, gamma


def largest_eigenvectors(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues and their eigenvectors, as rows. Needs x64 mode on a GPU.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Symmetric, in float64.
    count : int
        Number of eigenvectors; all of them if there are fewer.
    """
    n = len(matrix)
    if jax.default_backend() != "cpu":
        values, vectors = (np.asarray(one) for one in _eigh_there(matrix, min(count, n)))
        return values, vectors
    values, vectors = eigh(matrix, subset_by_index=(max(n - count, 0), n - 1))
    return values[::-1], np.ascontiguousarray(vectors.T[::-1])


def bound_outside(
    matrix: np.ndarray,
    values: np.ndarray,
    vectors: np.ndarray,
    residuals: np.ndarray,
    following: float,
    error: float,
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
    """
    n, count = len(matrix), len(values)
    rest = matrix - (vectors.T * values) @ vectors
    size = float(np.linalg.norm(matrix))
    uneven = float(np.linalg.norm(vectors @ vectors.T - np.eye(count))) + count * gamma(n)
    apart = 3 * float(np.linalg.norm(residuals)) + 2 * uneven * float(values.max(initial=0))
    apart += gamma(count + OPERATIONS) * (float(values.sum()) + size)
    slack = max(apart + error + UNIT * size, np.finfo(float).tiny)
    while True:
        bound = max(following, 0.0) + slack
        if _has_factor(bound * np.eye(n) - rest):
            # Twice: the trace of the rest may be negative, as that of a matrix in float32 whose error was measured.
            return bound * (1 + 2 * n * gamma(n + 2)) + apart + error
        slack *= 4


def _has_factor(matrix: np.ndarray) -> bool:
    """Return whether a Cholesky factor exists."""
    if jax.default_backend() != "cpu":
        # The factor is NaN where there is none.
        return bool(jnp.isfinite(jnp.linalg.cholesky(jnp.asarray(matrix))).all())
    try:
        cholesky(matrix, check_finite=False, overwrite_a=True)
    except LinAlgError:
        return False
    return True


def _eigh_there(matrix: np.ndarray, count: int) -> tuple[jax.Array, jax.Array]:
    """Version of `largest_eigenvectors` on the device. Only the vectors that are asked for are transferred."""
    values, vectors = jnp.linalg.eigh(jnp.asarray(matrix))
    return values[::-1][:count], vectors[:, ::-1][:, :count].T
