r"""The spheres that players live on: tangent spaces, ways back, places to start.

Players are rows: every function here acts on each row of a (k, d) array on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.game.rows import full_product
from eigengame.game.wide import long_product

WIDE = 4096
"""Features from which on products orthonormalise players; below that, QR is as fast on one core."""

APART = 0.03
"""The least distance of a unit player from the span of those before it, for products to be exact."""


def inner(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return the inner product of each pair of rows, shape (k, 1)."""
    return jnp.sum(left * right, axis=-1, keepdims=True)


def norms(players: jax.Array) -> jax.Array:
    """Return the length of each row, shape (k, 1)."""
    return jnp.linalg.norm(players, axis=-1, keepdims=True)


def safe_norms(directions: jax.Array) -> jax.Array:
    """Return the length of each row, shape (k,), of which the squares may be out of the dtype's range.

    Gradients are of the size of $M$: the square of the data's, and its square in turn underflows in
    float32 for data of 1e-10.
    """
    largest = jnp.max(jnp.abs(directions), axis=-1, keepdims=True)
    return (largest * norms(directions / jnp.where(largest > 0, largest, 1)))[..., 0]


def project_tangent(players: jax.Array, directions: jax.Array) -> jax.Array:
    r"""Return the directions without their part along the players.

    $\nabla^R_i = \nabla_i - \langle \nabla_i, \hat v_i\rangle \hat v_i$ (Alg. 2).
    """
    return directions - inner(directions, players) * players


def retract(players: jax.Array) -> jax.Array:
    r"""Return each row scaled to the unit sphere; a zero row stays zero."""
    # Dividing by the largest entry first keeps rows as small as 1e-30 from underflowing.
    largest = jnp.max(jnp.abs(players), axis=-1, keepdims=True)
    scaled = players / jnp.where(largest > 0, largest, 1)
    length = norms(scaled)
    return scaled / jnp.where(length > 0, length, 1)


def into_ball(players: jax.Array) -> jax.Array:
    r"""Return each row scaled into the unit ball $\|\hat v_i\| \le 1$ (footnote of Design Decisions)."""
    return jnp.where(norms(players) > 1, retract(players), players)


def unit_rejections(directions: jax.Array, reject: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Return unit rows of `directions` less what `reject` takes away, or zero rows.

    Applied twice, which is enough. A row of which the second time takes more than half was rounding
    noise left by a cancellation: it is no direction, and becomes zero.
    """
    once = retract(directions - reject(directions))
    twice = once - reject(once)
    return jnp.where(norms(twice) > 0.5, retract(twice), 0)


def orthonormalise(players: jax.Array) -> jax.Array:
    r"""Return the rows orthonormalised in order, each keeping its sign (Alg. Oja).

    The QR factorisation of $V^\top$, its columns multiplied by
    `sign(sign(diag(R)) + 0.5)`, which is -1 or 1 and never 0. Wide players that are well apart get the same by
    products alone: a Cholesky factor of their overlaps, twice, which is as accurate as QR; devices that share
    features then tell each other overlaps, (k, k), and no players.
    """
    k, d = players.shape
    return _by_qr(players) if d < max(WIDE, 8 * k) else _by_products(players)


@jax.jit
def _by_products(players: jax.Array) -> jax.Array:
    """Return the rows orthonormalised by two Cholesky factors, or by QR where they are not well apart."""
    unit = retract(players)  # the same span and order, and overlaps within range
    once, apart = _by_cholesky(unit)
    error = jnp.abs(_overlaps(once) - jnp.eye(len(once), dtype=once.dtype))
    twice, _ = _by_cholesky(once)
    # The second time squares what the first has left of an error.
    good = apart & jnp.all(error < 0.1)
    return jax.lax.cond(good, lambda: twice, lambda: _by_qr(players))


def _by_cholesky(players: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return unit rows nearly orthonormalised in order, and whether they were well apart."""
    factor = jnp.linalg.cholesky(_overlaps(players))
    unit = jnp.eye(players.shape[0], dtype=players.dtype)
    inverse = jax.scipy.linalg.solve_triangular(factor, unit, lower=True)
    # How far each row is from those before it. A factor that does not exist is NaN, and nothing above.
    return full_product(inverse, players), jnp.all(jnp.diag(factor) > APART)


def _overlaps(players: jax.Array) -> jax.Array:
    """Return the inner products of all pairs of rows (k, k)."""
    return long_product(players, players)


def _by_qr(players: jax.Array) -> jax.Array:
    """Return the rows orthonormalised by Householder's QR, which takes any rows."""
    q, r = jnp.linalg.qr(players.T)
    signs = jnp.sign(jnp.sign(jnp.diag(r)) + 0.5)
    return (q * signs[None, :]).T


def random_players(key: jax.Array | int, k: int, d: int, dtype: Any = jnp.float32) -> jax.Array:
    r"""Return k players drawn uniformly from the sphere $\mathcal S^{d-1}$, shape (k, d).

    Parameters
    ----------
    key : JAX random key, or int seed
    k, d : int
        Number of players and of features, $1 \le k \le d$.
    dtype : dtype
        Precision of the players.
    """
    _check.component_count(k, d)
    if not isinstance(key, jax.Array):
        key = jax.random.key(_check.seed("seed", key))
    return retract(jax.random.normal(key, (k, d), dtype))
