"""The optimum of a child with fixed parents, exact and by gradient ascent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.game import SymmetricRows, sphere
from eigengame.game.utilities import gradients

STEP = 0.03
"""Step size of the ascent, for eigenvalues of up to 10."""


def optimum_angles(
    spectrum: Sequence[float], parents: np.ndarray, free: Sequence[float]
) -> np.ndarray:
    """Return the exact angle between a child's optimum and its component, shape (points,).

    Its utility is a quadratic form: the optimum is the top eigenvector over the free axes.

    Parameters
    ----------
    spectrum : sequence of d floats
        Diagonal of M.
    parents : array of shape (points, i, d)
        Unit rows. The child is player i, counted from 0.
    free : sequence of d floats
        1 for each axis along which the child may move, else 0.
    """
    m, axes = np.diag(spectrum), np.flatnonzero(free)

    def one(fixed: np.ndarray) -> float:
        seen = fixed @ m
        form = m - sum(np.outer(row, row) / (row @ v) for row, v in zip(seen, fixed, strict=True))
        best = np.zeros(len(spectrum))
        best[axes] = np.linalg.eigh(form[np.ix_(axes, axes)])[1][:, -1]
        return float(metrics.angular_error(best, np.eye(len(spectrum))[len(fixed)]))

    return np.array([one(fixed) for fixed in parents])


def played_angles(
    spectrum: Sequence[float],
    parents: np.ndarray,
    free: Sequence[float],
    begun: jax.Array,
    rounds: int,
) -> np.ndarray:
    """Return the child's angle after an ascent from each of (trials, d) starts, shape (trials, points)."""
    rows = SymmetricRows(jnp.diag(jnp.asarray(spectrum, jnp.float32)))
    fixed, mask = jnp.asarray(parents, jnp.float32), jnp.asarray(free, jnp.float32)
    found = np.asarray(_climb(rounds, rows, fixed, mask, begun), np.float64)
    truth = np.broadcast_to(np.eye(len(spectrum))[parents.shape[1]], found.shape)
    return metrics.angular_error(found, truth)


@partial(jax.jit, static_argnums=0)
def _climb(
    rounds: int, rows: SymmetricRows, parents: jax.Array, free: jax.Array, begun: jax.Array
) -> jax.Array:
    """Return the children after an ascent along the free axes, shape (trials, points, d)."""

    def climb(child: jax.Array, fixed: jax.Array) -> jax.Array:
        def step(child: jax.Array, _: None) -> tuple[jax.Array, None]:
            uphill = gradients(rows, jnp.concatenate([fixed, child]))[-1:] * free[None, :]
            moved = child + STEP * sphere.project_tangent(child, uphill)
            return sphere.retract(moved), None

        child = sphere.retract(child[None, :] * free[None, :])
        return jax.lax.scan(step, child, None, length=rounds)[0][0]

    return jax.vmap(lambda child: jax.vmap(partial(climb, child))(parents))(begun)
