r"""How far players are from the truth: the paper's measures.

Players and truth are rows, shapes (k, d) and (at least k, d). Functions take NumPy or JAX arrays and
answer in the same kind (so that they can be jitted and vmapped), except those that say otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from eigengame import _check

STREAK_ANGLE = math.pi / 8
"""The angle within which the paper counts a component as found."""


def angular_error(players: Any, truth: Any) -> Any:
    r"""Return the angle of each player to its component, shape (k,), in radians.

    $\theta_i = \sin^{-1}\sqrt{1 - \langle v_i, \hat v_i\rangle^2}$, signs ignored. Computed as the
    arctangent of the parts across and along, which is the same angle and keeps its digits where the
    formula loses half of them (below 1e-8 in float64). A zero player is a right angle away; NaN
    stays NaN.
    """
    xp = jnp if isinstance(players, jax.Array) or isinstance(truth, jax.Array) else np
    players, truth = xp.asarray(players), xp.asarray(truth)
    if players.ndim == 2:
        truth = truth[: players.shape[0]]
    _same_shape(players, truth)
    truth = truth / xp.linalg.norm(truth, axis=-1, keepdims=True)
    along = xp.sum(players * truth, axis=-1, keepdims=True)
    across = xp.linalg.norm(players - along * truth, axis=-1)
    along = xp.abs(along[..., 0])
    return xp.where(across + along == 0, math.pi / 2, xp.arctan2(across, along))


def longest_streak(players: Any, truth: Any, angle: float = STREAK_ANGLE) -> Any:
    """Return how many leading components are within `angle`: it stops at the first miss."""
    return streak_of(angular_error(players, truth), angle)


def streak_of(errors: Any, angle: float = STREAK_ANGLE) -> Any:
    """Return the streak from angles (..., k) that are already known."""
    xp = jnp if isinstance(errors, jax.Array) else np
    streak = xp.sum(xp.cumprod(xp.asarray(errors) <= angle, axis=-1), axis=-1)
    return streak if isinstance(errors, jax.Array) or streak.ndim else int(streak)


def subspace_distance(players: Any, truth: Any) -> Any:
    r"""Return $1 - \frac1k\mathrm{Tr}(U^*P)$ with $U^* = VV^\dagger$, $P = \hat V\hat V^\dagger$.

    0 where the players span the components, 1 where they are orthogonal to all of them. Projections
    are by pseudo-inverse, so players need not be orthonormal, nor even independent.
    """
    xp = jnp if isinstance(players, jax.Array) or isinstance(truth, jax.Array) else np
    players, truth = xp.asarray(players), xp.asarray(truth)
    k = players.shape[0]
    _same_shape(players, truth[:k])
    # Tr(V V+ V^ V^+) through k x k products: never a d x d projection.
    across = truth[:k] @ xp.linalg.pinv(players)
    return 1 - xp.trace((players @ xp.linalg.pinv(truth[:k])) @ across) / k


def match(players: Any, truth: Any) -> np.ndarray:
    """Return the order of players, as NumPy indices, that matches the components best.

    The assignment with the largest sum of absolute cosines: for algorithms that find components in
    no order, before angles are measured.
    """
    found, true = np.asarray(players, np.float64), np.asarray(truth, np.float64)[: len(players)]
    _same_shape(found, true)
    return linear_sum_assignment(np.abs(true @ found.T), maximize=True)[1]


def true_components(
    rows: Any = None, k: int | None = None, *, matrix: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the largest eigenvalues (k,) and components (k, d) of $M$ by float64 `eigh`.

    Parameters
    ----------
    rows : array of shape (n, d), optional
        $M = X^\top X$; or give `matrix`.
    k : int, optional
        How many; all by default.
    matrix : array of shape (d, d), optional
        $M$ itself.
    """
    if (rows is None) == (matrix is None):
        raise ValueError("rows and matrix: give one of them.")
    if matrix is None:
        data = np.asarray(_check.matrix("rows", rows), np.float64)
        matrix = data.T @ data
    matrix = np.asarray(_check.matrix("matrix", matrix), np.float64)
    if matrix.shape[0] != matrix.shape[1] or not _symmetric(matrix):
        raise ValueError(
            f"matrix of shape {matrix.shape} is not its own transpose: give (A + A.T) / 2 if that is "
            "meant, or the data as rows."
        )
    d = matrix.shape[0]
    k = d if k is None else _check.component_count(k, d)
    values, vectors = eigh(matrix, subset_by_index=(d - k, d - 1))
    return values[::-1], vectors.T[::-1]


def _symmetric(matrix: np.ndarray) -> bool:
    """Say whether a matrix, perhaps of float32 products, is its own transpose to rounding."""
    asymmetry, size = np.abs(matrix - matrix.T).max(), np.abs(matrix).max()
    return bool(asymmetry <= 100 * np.finfo(np.float32).eps * size)


def _same_shape(players: Any, truth: Any) -> None:
    """Accept players and truth of one shape."""
    if players.shape != truth.shape:
        raise ValueError(
            f"players has shape {players.shape} and truth {truth.shape}: "
            "give at least as many true components as players, of the same width."
        )
