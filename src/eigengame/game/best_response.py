r"""Best responses: each player's exact maximum over a space of its own, with no step size.

With parents fixed, $u_i(v) = v^\top A_i v$ with
$A_i = M - \sum_{j<i} M\hat v_j\hat v_j^\top M / \langle\hat v_j, M\hat v_j\rangle$: a quadratic form. Over
the span of its own vector, its tangent gradient and its previous move, player $i$'s best response is
the top eigenvector of a 3 x 3 matrix whose entries are inner products of scores. Scores of the new
players follow by linearity, so a round costs one product with $Z$ and one with $Z^\top$: a gradient
step's price with the pace of conjugate gradients, one player at a time and in parallel, and nothing
is ever orthogonalised between players.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from eigengame.game import sphere
from eigengame.game.rows import Rows
from eigengame.game.utilities import PAPER, coefficients, overlap_ratios
from eigengame.linalg.orthonormal import inner, norms, unit_rejections
from eigengame.linalg.products import full_product


class Standing(NamedTuple):
    """Where the players are and where they came from, with the scores of both.

    Attributes
    ----------
    players, moves : arrays of shape (k, d)
        Unit rows; a move is zero before the first round.
    scores, move_scores : arrays of shape (m, k)
    """

    players: jax.Array
    moves: jax.Array
    scores: jax.Array
    move_scores: jax.Array


def standing(rows: Rows, players: jax.Array, moves: jax.Array) -> Standing:
    """Return players and moves with their scores on these rows: one product for both."""
    k = players.shape[0]
    scores = rows.scores(jnp.concatenate([players, moves]))
    return Standing(players, moves, scores[:, :k], scores[:, k:])


def best_responses(rows: Rows, now: Standing) -> tuple[Standing, jax.Array, jax.Array]:
    """Play one round: every player answers best within its own three directions.

    Returns
    -------
    now : Standing
        After the round.
    gram : array of shape (k, k)
        Of the scores before it.
    gradient_norms : array of shape (k,)
        Of the tangent gradients before it.
    """
    gram = rows.gram(now.scores, now.scores)
    answers = full_product(now.scores, coefficients(gram))
    gradient = 2 * rows.directions(answers)
    gradient_norms = norms(sphere.project_tangent(now.players, gradient))[:, 0]
    uphill = _uphill(now.players, gradient, gradient_norms)
    uphill_scores = rows.scores(uphill)
    moves, move_scores = _orthogonal_moves(now, uphill, uphill_scores)

    # (3, k, d) and (3, m, k): each player's own orthonormal space, and what it sees from there.
    space = jnp.stack([now.players, uphill, moves])
    views = jnp.stack([now.scores, uphill_scores, move_scores])
    slopes = inner(gradient / 2, uphill)[:, 0]
    forms = _in_range(_as_known(_quadratic_forms(rows, gram, now.scores, views), slopes), space)
    best = jnp.linalg.eigh(forms)[1][:, :, -1].T
    best = best * jnp.where(best[:1] < 0, -1, 1)  # (3, k): never turn to the other side

    moved = jnp.sum(best[:, :, None] * space, axis=0)
    moved_scores = jnp.sum(best[:, None, :] * views, axis=0)
    step = jnp.sum(best[1:, :, None] * space[1:], axis=0)
    step_scores = jnp.sum(best[1:, None, :] * views[1:], axis=0)
    players, scores = _unit(moved, moved_scores)
    moves, move_scores = _unit(step, step_scores)
    return Standing(players, moves, scores, move_scores), gram, gradient_norms


def _uphill(players: jax.Array, gradient: jax.Array, gradient_norms: jax.Array) -> jax.Array:
    """Return each player's tangent gradient as a unit row, zero where there is none.

    Near an optimum that is mostly rounding. A compiler that finds it cheaper to compute it twice than to keep it
    would take the scores of one direction and move along another, and players that have arrived would leave again.
    What a condition gives is kept.
    """
    return jax.lax.cond(
        jnp.any(gradient_norms > 0),
        lambda: unit_rejections(gradient, lambda rows: inner(rows, players) * players),
        lambda: jnp.zeros_like(players),
    )


def _unit(vectors: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return unit rows and their scores; a zero row stays zero."""
    length = norms(vectors)
    length = jnp.where(length > 0, length, 1)
    return vectors / length, scores / length.T


def _orthogonal_moves(
    now: Standing, uphill: jax.Array, uphill_scores: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the moves less their parts along player and gradient, as unit rows, with scores."""
    moves, scores = now.moves, now.move_scores
    for _ in range(2):  # twice is enough
        along, up = inner(moves, now.players), inner(moves, uphill)
        moves = moves - along * now.players - up * uphill
        scores = scores - along.T * now.scores - up.T * uphill_scores
        length = norms(moves)
        # A move within rounding of the other two directions says nothing new: drop it.
        kept = length > jnp.sqrt(jnp.finfo(moves.dtype).eps)
        unit = jnp.where(kept, length, 1)
        moves, scores = jnp.where(kept, moves / unit, 0), jnp.where(kept.T, scores / unit.T, 0)
    return moves, scores


def _as_known(forms: jax.Array, slopes: jax.Array) -> jax.Array:
    """Return the forms with the entries that the gradient tells better than scores do.

    <v_i, A_i s> is half the gradient along s: its whole length uphill, and nothing along a move that is
    orthogonal to both. Scores of moves follow by linearity, and those of a short move are mostly rounding.
    """
    first = jnp.stack([forms[:, 0, 0], slopes, jnp.zeros_like(slopes)], axis=1)
    return forms.at[:, 0, :].set(first).at[:, :, 0].set(first)


def _in_range(forms: jax.Array, space: jax.Array) -> jax.Array:
    """Return the forms (k, 3, 3) in units of their largest entry, missing directions below all others.

    A direction that is missing, a zero row, offers a utility of 0, and parents that are not yet apart can
    make every true one negative: a player that chose it would be nowhere, and stay there.
    """
    size = jnp.max(jnp.abs(forms), axis=(1, 2), keepdims=True)
    forms = forms / jnp.where(size > 0, size, 1)
    missing = ~jnp.any(space != 0, axis=2).T  # (k, 3)
    # Entries are at most 1, so no eigenvalue of three directions is below -3.
    return jnp.where(missing[:, :, None] & jnp.eye(3, dtype=bool)[None], -4, forms)


def _quadratic_forms(rows: Rows, gram: jax.Array, scores: jax.Array, views: jax.Array) -> jax.Array:
    """Return S_i' A_i S_i for every player, shape (k, 3, 3), from scores alone."""
    # cross[s, j, i] = <v_j, M s_i>: how direction s of player i overlaps player j.
    cross = jnp.stack([rows.gram(scores, view) for view in views])
    shares = overlap_ratios(jnp.ones_like(gram), jnp.diag(gram), PAPER)
    penalty = jnp.einsum("sji,ji,tji->ist", cross, shares, cross, precision="highest")
    own = jnp.stack(
        [jnp.stack([jnp.diag(rows.gram(left, right)) for right in views]) for left in views]
    )
    forms = jnp.moveaxis(own, 2, 0) - penalty
    return (forms + jnp.swapaxes(forms, 1, 2)) / 2
