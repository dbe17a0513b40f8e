r"""Alternatives to the utilities that the paper considers and rejects (appendix Design Decisions)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from eigengame.game.rows import Rows
from eigengame.game.utilities import penalised_by
from eigengame.linalg.products import full_product


def naive_utilities(gram: jax.Array, overlaps: jax.Array, *, squared: bool = False) -> jax.Array:
    r"""Return $\langle\hat v_i, M\hat v_i\rangle - \sum_{j<i}\langle\hat v_i,\hat v_j\rangle$, shape (k,).

    The penalties do not contain $M$, and the game does not solve PCA. As printed, without the square, an overlap of
    -1 is a reward: to exact parents, $-v_1$ is always a better response than $v_i$. With squared overlaps, $v_1$ is
    the best response if $\Lambda_{11} - 1 > \Lambda_{ii}$, that is, if the eigenvalues are large.

    Parameters
    ----------
    gram : array of shape (k, k)
        $\langle\hat v_i, M\hat v_j\rangle$.
    overlaps : array of shape (k, k)
        $\langle\hat v_i, \hat v_j\rangle$.
    squared : bool
        Whether overlaps are squared.
    """
    penalties = jnp.square(overlaps) if squared else overlaps
    parents = jnp.where(penalised_by(gram.shape[0]), penalties, 0)
    return jnp.diag(gram) - jnp.sum(parents, axis=0)


def gram_schmidt_directions(rows: Rows, players: jax.Array) -> jax.Array:
    r"""Return $2M[\hat v_i - \sum_{j<i}\langle\hat v_i,\hat v_j\rangle\hat v_j]$ of each player, shape (k, d).

    The gradient (eq. ui_grad) with the Euclidean inner product in place of that of $M$. Updates along it solve PCA,
    but it is not the gradient of any utility: its Jacobian $2M(I - \sum_{j<i}\hat v_j\hat v_j^\top)$ is in general
    not symmetric. On $M = I$ it equals the gradient.

    Parameters
    ----------
    rows : Rows
    players : array of shape (k, d)
        Unit rows.
    """
    overlaps = full_product(players, players.T)
    parents = jnp.where(penalised_by(players.shape[0]), overlaps, 0)
    combined = jnp.eye(players.shape[0], dtype=players.dtype) - parents
    return 2 * rows.directions(full_product(rows.scores(players), combined))
