r"""A round by Rayleigh-Ritz in the block Krylov space $[V, MV]$.

With its parents fixed, a player's utility is a quadratic form, so its best response within a small space can be
computed exactly. Let this space be spanned by all players and all their directions, $[V, MV]$, and let the players
respond to each other there until none can gain. This equilibrium is the top eigenvectors of $M$ within the space
(Theorem eigvec_opt, applied to the space): one small eigenproblem. A round costs one product with $Z$ and one with
$Z^\top$, as a gradient step does, and has no step size.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax

from eigengame.game.rows import Rows
from eigengame.linalg.eigh import symmetric_eigh
from eigengame.linalg.library import array_namespace, cond
from eigengame.linalg.orthonormal import unit_rejections, whiten, whiten_nearly
from eigengame.linalg.products import full_product


def sort_empty_last(matrix: jax.Array, empty: jax.Array, size: jax.Array) -> jax.Array:
    """Lower the eigenvalues of empty directions (a mask) below those of all real directions.

    A real direction without any reward has eigenvalue 0; an empty one must not be chosen instead of it.
    """
    xp = array_namespace(matrix)
    return matrix - xp.diag(xp.where(empty, xp.where(size > 0, size, 1), 0))


def residual_directions(players: jax.Array, images: jax.Array, gram: jax.Array) -> jax.Array:
    """Return the parts of the images M V outside the span of orthonormal players, as unit rows (K, d).

    The row of a player that is an eigenvector is zero.
    """
    return unit_rejections(
        images - full_product(gram, players),
        lambda rows: full_product(full_product(rows, players.T), players),
    )


class Fresh(NamedTuple):
    """Directions beside the players.

    Attributes
    ----------
    directions : array of shape (K, d)
    scores : array of shape (m, K)
    inside : array of shape (K, K)
        Their inner products with the players.
    basis : array of shape (K, K)
        Makes their parts outside the players orthonormal.
    empty : array of shape (K,)
        Mask of the zero rows of the basis.
    """

    directions: jax.Array
    scores: jax.Array
    inside: jax.Array
    basis: jax.Array
    empty: jax.Array


class RoundScores(NamedTuple):
    """Scores after a round, as combinations of scores before it. Only a further round computes them.

    Attributes
    ----------
    players, fresh : arrays of shape (m, K)
        Scores of the players before the round, and of the directions beside them.
    own, other : arrays of shape (K, K)
        Coefficients of the new players.
    """

    players: jax.Array
    fresh: jax.Array
    own: jax.Array
    other: jax.Array

    def combined(self) -> jax.Array:
        """Return the scores (m, K) of the new players."""
        return full_product(self.players, self.own.T) + full_product(self.fresh, self.other.T)


def krylov_round(
    rows: Rows, players: jax.Array, scores: jax.Array, past: jax.Array | None = None
) -> tuple[jax.Array, RoundScores, jax.Array]:
    r"""Return the top Ritz vectors within [V, M V], their scores and their Ritz values.

    Parameters
    ----------
    rows : Rows
    players : array of shape (K, d)
        Orthonormal.
    scores : array of shape (m, K)
        `rows.scores(players)`.
    past : array of shape (K,), optional
        Strengths $\lambda$ of a memory along these same players: adds $V^\top\mathrm{diag}(\lambda)V$ to $M$. This
        term is zero outside the span of the players, so it needs no product.

    Returns
    -------
    players : array of shape (K, d)
        Orthonormal, by decreasing Ritz value.
    scores : RoundScores
    strengths : array of shape (K,)
        Ritz values of M, at least 0.
    """
    k, xp = players.shape[0], array_namespace(players)
    gram = rows.gram(scores, scores)
    fresh = rows.directions(scores) - full_product(gram, players)
    # Scaled to size 1: directions have the size of M, so their squares may be out of range.
    largest = xp.max(xp.abs(fresh), axis=1, keepdims=True)
    fresh = fresh / xp.where(largest > 0, largest, 1)
    # Rounding errors along the players are removed from the smaller ones: from the directions of few features, or
    # from the scores of few rows and the coefficients.
    inside = full_product(fresh, players.T)
    raw, tall = full_product(fresh, fresh.T), scores.shape[0] > players.shape[1]
    if tall:
        fresh = fresh - full_product(inside, players)
        inside, overlaps = xp.zeros_like(inside), full_product(fresh, fresh.T)
    else:
        overlaps = raw - full_product(inside, inside.T)
    lengths2 = xp.diag(overlaps)
    # A row that mostly lies along the players consists of rounding errors: leave it out.
    real = lengths2 > 0.25 * xp.diag(raw)
    scale = xp.where(real, 1 / xp.sqrt(xp.where(real, lengths2, 1)), 0)
    basis, empty, apart = whiten(scale[:, None] * overlaps * scale[None, :])
    basis = basis * scale[None, :]
    # Scores before the branch: devices that share features exchange them together with the overlaps.
    given = Fresh(fresh, rows.scores(fresh), inside, basis, empty)
    fresh, fresh_scores, inside, basis, empty = cond(
        apart, lambda one: one, partial(_made_orthonormal, rows, players), given
    )
    if not tall:
        fresh_scores = fresh_scores - full_product(scores, inside.T)
    across = full_product(rows.gram(scores, fresh_scores), basis.T)
    among = full_product(full_product(basis, rows.gram(fresh_scores, fresh_scores)), basis.T)
    if past is not None:
        gram = gram + xp.diag(past)
    among = sort_empty_last(among, empty, xp.max(xp.diag(gram)))
    small = xp.block([[gram, across], [across.T, among]])
    values, axes = symmetric_eigh(small)
    chosen = axes.T[::-1][:k]
    own, other = chosen[:, :k], full_product(chosen[:, k:], basis)
    return (
        full_product(own - full_product(other, inside), players) + full_product(other, fresh),
        RoundScores(scores, fresh_scores, own, other),
        xp.maximum(values[::-1][:k], 0),
    )


def _made_orthonormal(rows: Rows, players: jax.Array, given: Fresh) -> Fresh:
    """Return directions that are orthonormal to rounding, and outside the players.

    Combinations of nearly dependent directions amplify rounding errors, along the players and in their overlaps. So
    they are made, the players are removed again, and what is left is whitened by its measured overlaps.
    """
    xp = array_namespace(players)
    made = full_product(given.basis, given.directions - full_product(given.inside, players))
    made = made - full_product(full_product(made, players.T), players)
    overlaps = full_product(made, made.T)
    # A row that is far from unit length consists of rounding errors.
    empty = given.empty | (xp.abs(xp.diag(overlaps) - 1) > 0.5)
    made = full_product(whiten_nearly(xp.where(empty[:, None] | empty[None, :], 0, overlaps)), made)
    made = xp.where(empty[:, None], 0, made)
    unit = xp.diag(xp.where(empty, 0, 1).astype(made.dtype))
    return Fresh(made, rows.scores(made), xp.zeros_like(given.inside), unit, empty)
