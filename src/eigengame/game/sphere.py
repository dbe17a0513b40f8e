r"""The unit sphere: tangent projection, retraction and random points.

Each function acts on the rows of a (k, d) array separately.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.linalg.orthonormal import inner, norms, unit_rows


def project_tangent(players: jax.Array, directions: jax.Array) -> jax.Array:
    r"""Return the directions without their components along the players.

    $\nabla^R_i = \nabla_i - \langle \nabla_i, \hat v_i\rangle \hat v_i$ (Alg. 2).
    """
    return directions - inner(directions, players) * players


def retract(players: jax.Array) -> jax.Array:
    r"""Return each row scaled to length 1; a zero row stays zero."""
    return unit_rows(players)


def into_ball(players: jax.Array) -> jax.Array:
    r"""Return rows longer than 1 scaled to length 1: $\|\hat v_i\| \le 1$ (footnote of Design Decisions)."""
    return jnp.where(norms(players) > 1, retract(players), players)


def random_players(key: jax.Array | int, k: int, d: int, dtype: Any = jnp.float32) -> jax.Array:
    r"""Return k players drawn uniformly from the sphere $\mathcal S^{d-1}$, shape (k, d).

    Parameters
    ----------
    key : JAX random key, or int seed
    k, d : int
        Number of players and of features, $1 \le k \le d$.
    dtype : dtype
        Dtype of the players.
    """
    _check.component_count(k, d)
    if not isinstance(key, jax.Array):
        key = jax.random.key(_check.seed("seed", key))
    return retract(jax.random.normal(key, (k, d), dtype))
