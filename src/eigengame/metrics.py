r"""Accuracy of components: the error measures of the paper.

Players and true components are rows, of shapes (k, d) and (at least k, d). Unless stated otherwise, functions
take NumPy or JAX arrays and return the same kind, so that they work under `jax.jit` and `jax.vmap`.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh, orth, svdvals
from scipy.optimize import linear_sum_assignment

from eigengame import _check

STREAK_ANGLE = math.pi / 8
"""Angle up to which the paper counts a component as correct."""

LARGE = 2**20
"""Size of an array on the host from which players are compared one at a time."""


def angular_error(players: Any, truth: Any) -> Any:
    r"""Return the angle of each player to its component, shape (k,), in radians.

    $\theta_i = \sin^{-1}\sqrt{1 - \langle v_i, \hat v_i\rangle^2}$, ignoring signs. Computed as the arctangent
    of the orthogonal and parallel parts: the same angle, without the cancellation of the formula (below 1e-8 in
    float64). The angle of a zero player is pi / 2; that of a player with NaN is NaN.
    """
    xp = jnp if isinstance(players, jax.Array) or isinstance(truth, jax.Array) else np
    players, truth = xp.asarray(players), xp.asarray(truth)
    if players.ndim == 2:
        truth = truth[: players.shape[0]]
    _check_same_shape(players, truth)
    if xp is np and players.ndim == 2 and len(players) > 1 and players.size > LARGE:
        # One at a time, so that temporary arrays stay in the cache.
        return np.array([angular_error(*pair) for pair in zip(players, truth, strict=True)])
    truth = truth / xp.linalg.norm(truth, axis=-1, keepdims=True)
    along = xp.sum(players * truth, axis=-1, keepdims=True)
    across = xp.linalg.norm(players - along * truth, axis=-1)
    along = xp.abs(along[..., 0])
    return xp.where(across + along == 0, math.pi / 2, xp.arctan2(across, along))


def longest_streak(players: Any, truth: Any, angle: float = STREAK_ANGLE) -> Any:
    """Return the number of leading components within `angle`, up to the first that is not."""
    return streak_of(angular_error(players, truth), angle)


def streak_of(errors: Any, angle: float = STREAK_ANGLE) -> Any:
    """Return the streak for given angles of shape (..., k)."""
    xp = jnp if isinstance(errors, jax.Array) else np
    streak = xp.sum(xp.cumprod(xp.asarray(errors) <= angle, axis=-1), axis=-1)
    return streak if isinstance(errors, jax.Array) or streak.ndim else int(streak)


def subspace_distance(players: Any, truth: Any) -> Any:
    r"""Return $1 - \frac1k\mathrm{Tr}(U^*P)$ with $U^* = VV^\dagger$, $P = \hat V\hat V^\dagger$.

    0 if the players span the components, 1 if they are orthogonal to all of them. Projections use the
    pseudo-inverse, so players need not be orthonormal or linearly independent.
    """
    xp = jnp if isinstance(players, jax.Array) or isinstance(truth, jax.Array) else np
    players, truth = xp.asarray(players), xp.asarray(truth)
    k = players.shape[0]
    _check_same_shape(players, truth[:k])
    # Tr(V V+ V^ V^+) from k x k products, without d x d projections.
    across = truth[:k] @ xp.linalg.pinv(players)
    return 1 - xp.trace((players @ xp.linalg.pinv(truth[:k])) @ across) / k


def principal_angles(one: Any, other: Any) -> np.ndarray:
    r"""Return the principal angles between the spans of rows (k, d) and (l, d), in radians, smallest first.

    $\cos\theta_i$ are the singular values of $Q_1^\top Q_2$ for orthonormal bases $Q_1, Q_2$ (columns), and
    $\sin\theta_i$ those of $Q_2 - Q_1 Q_1^\top Q_2$. Angles are computed in float64 from both, so that small and
    large ones are accurate. There are as many as the smaller of the dimensions of the spans.
    """
    given = [
        np.asarray(_check.matrix(*pair), np.float64) for pair in (("one", one), ("other", other))
    ]
    _check.same_width("one", given[0].shape[1], "other", given[1].shape[1])
    bases = [orth(rows.T) for rows in given]
    large, small = sorted(bases, key=lambda basis: -basis.shape[1])
    products = large.T @ small
    sines = svdvals(small - large @ products)
    return np.arctan2(sines[::-1], svdvals(products))


def match(players: Any, truth: Any) -> np.ndarray:
    """Return the permutation of players, as NumPy indices, that best matches the components.

    Maximises the sum of absolute cosines. Use it before measuring angles, for algorithms that return components
    in any order.
    """
    found, true = np.asarray(players, np.float64), np.asarray(truth, np.float64)[: len(players)]
    _check_same_shape(found, true)
    return linear_sum_assignment(np.abs(true @ found.T), maximize=True)[1]


def true_components(
    rows: Any = None, k: int | None = None, *, matrix: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the largest eigenvalues (k,) and components (k, d) of $M$, computed by `eigh` in float64.

    Parameters
    ----------
    rows : array of shape (n, d), optional
        Data $X$, with $M = X^\top X$. Alternative to `matrix`.
    k : int, optional
        Number of components. Default: all.
    matrix : array of shape (d, d), optional
        $M$ itself.
    """
    if (rows is None) == (matrix is None):
        raise ValueError("rows and matrix: give exactly one of them.")
    if matrix is None:
        data = np.asarray(_check.matrix("rows", rows), np.float64)
        matrix = data.T @ data
    matrix = np.asarray(_check.matrix("matrix", matrix), np.float64)
    if matrix.shape[0] != matrix.shape[1] or not _is_symmetric(matrix):
        raise ValueError(
            f"matrix of shape {matrix.shape} is not symmetric: give (A + A.T) / 2, or the data as rows."
        )
    d = matrix.shape[0]
    k = d if k is None else _check.component_count(k, d)
    values, vectors = eigh(matrix, subset_by_index=(d - k, d - 1))
    return values[::-1], vectors.T[::-1]


def _is_symmetric(matrix: np.ndarray) -> bool:
    """Return whether a matrix is symmetric up to rounding in float32."""
    asymmetry, size = np.abs(matrix - matrix.T).max(), np.abs(matrix).max()
    return bool(asymmetry <= 100 * np.finfo(np.float32).eps * size)


def _check_same_shape(players: Any, truth: Any) -> None:
    """Raise ValueError if players and true components differ in shape."""
    if players.shape != truth.shape:
        raise ValueError(
            f"players has shape {players.shape} and truth {truth.shape}: "
            "give at least as many true components as players, with the same number of features."
        )
