r"""A round in which every player may use every player's direction: best responses to equilibrium.

With parents fixed a player's utility is a quadratic form, so within any small space its best response
is exact. Let that space be spanned by all players and all their directions, $[V, MV]$, and let the
players answer each other there until nobody gains: the equilibrium is the top eigenvectors of $M$
within the space (Theorem eigvec_opt, on the space), which a small symmetric problem gives at once.
A round costs one product with $Z$ and one with $Z^\top$, like a gradient step, and has no step size.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from eigengame.game.rows import Rows
from eigengame.linalg.orthonormal import unit_rejections, whiten
from eigengame.linalg.products import full_product


def put_last(among: jax.Array, empty: jax.Array, size: jax.Array) -> jax.Array:
    """Return a small symmetric problem in which empty directions come after all real ones.

    Players without any reward are still players: an empty direction must not take their place.
    """
    return among - jnp.diag(jnp.where(empty, jnp.where(size > 0, size, 1), 0))


def residual_directions(players: jax.Array, images: jax.Array, gram: jax.Array) -> jax.Array:
    """Return unit directions (K, d) orthogonal to orthonormal players, from their images M V.

    What each player's image adds to the players' span; zero for a player that is an eigenvector.
    """
    return unit_rejections(
        images - full_product(gram, players),
        lambda rows: full_product(full_product(rows, players.T), players),
    )


def joint_round(
    rows: Rows, players: jax.Array, scores: jax.Array, past: jax.Array | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    r"""Return players, their scores and strengths at the equilibrium within [V, M V].

    Parameters
    ----------
    rows : Rows
    players : array of shape (K, d)
        Orthonormal.
    scores : array of shape (m, K)
        `rows.scores(players)`, carried from round to round.
    past : array of shape (K,), optional
        Strengths of a memory along these very players: $V^\top\mathrm{diag}(\lambda)V$ joins $M$. It
        rewards each player where it is and cannot be seen from outside their span: no product is
        spent on it.

    Returns
    -------
    players : array of shape (K, d)
        Orthonormal and settled, the strongest first.
    scores : array of shape (m, K)
    strengths : array of shape (K,)
        What each player earns: Ritz values of M, at least 0.
    """
    k = players.shape[0]
    gram = rows.gram(scores, scores)
    fresh = rows.directions(scores) - full_product(gram, players)
    # Rows of size 1: the squares of directions, which have the size of M, may be out of range.
    largest = jnp.max(jnp.abs(fresh), axis=1, keepdims=True)
    fresh = fresh / jnp.where(largest > 0, largest, 1)
    # What rounding left along the players is taken off in coefficients, not in d numbers a row.
    inside = full_product(fresh, players.T)
    raw = full_product(fresh, fresh.T)
    overlaps = raw - full_product(inside, inside.T)
    lengths2 = jnp.diag(overlaps)
    # Of a row that loses most of itself only rounding is left: it is no direction.
    real = lengths2 > 0.25 * jnp.diag(raw)
    scale = jnp.where(real, 1 / jnp.sqrt(jnp.where(real, lengths2, 1)), 0)
    basis, empty = whiten(scale[:, None] * overlaps * scale[None, :])
    basis = basis * scale[None, :]
    seen = rows.scores(fresh) - full_product(scores, inside.T)
    across = full_product(rows.gram(scores, seen), basis.T)
    among = full_product(full_product(basis, rows.gram(seen, seen)), basis.T)
    if past is not None:
        gram = gram + jnp.diag(past)
    among = put_last(among, empty, jnp.max(jnp.diag(gram)))
    small = jnp.block([[gram, across], [across.T, among]])
    values, axes = jnp.linalg.eigh((small + small.T) / 2)
    chosen = axes.T[::-1][:k]
    own, other = chosen[:, :k], full_product(chosen[:, k:], basis)
    return (
        full_product(own - full_product(other, inside), players) + full_product(other, fresh),
        full_product(scores, own.T) + full_product(seen, other.T),
        jnp.maximum(values[::-1][:k], 0),
    )
