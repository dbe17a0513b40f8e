r"""Best responses: each player's exact maximum over a small space, without a step size.

With parents fixed, $u_i(v) = v^\top A_i v$ with
$A_i = M - \sum_{j<i} M\hat v_j\hat v_j^\top M / \langle\hat v_j, M\hat v_j\rangle$ is a quadratic form. Over
the span of its own vector, its tangent gradient and its previous move, the best response of player $i$ is
the top eigenvector of a 3 x 3 matrix whose entries are inner products of scores. The scores of the new
players follow by linearity, so a round costs one product with $Z$ and one with $Z^\top$, as a gradient step
does, and converges like conjugate gradients. Players respond in parallel and are not orthogonalised.
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


class ScoredPlayers(NamedTuple):
    """Players and their previous moves, with the scores of both.

    Attributes
    ----------
    players, moves : arrays of shape (k, d)
        Unit rows; moves are zero before the first round.
    scores, move_scores : arrays of shape (m, k)
    """

    players: jax.Array
    moves: jax.Array
    scores: jax.Array
    move_scores: jax.Array


def with_scores(rows: Rows, players: jax.Array, moves: jax.Array) -> ScoredPlayers:
    """Return players and moves with their scores on these rows, by one product."""
    k = players.shape[0]
    scores = rows.scores(jnp.concatenate([players, moves]))
    return ScoredPlayers(players, moves, scores[:, :k], scores[:, k:])


def best_responses(rows: Rows, now: ScoredPlayers) -> tuple[ScoredPlayers, jax.Array, jax.Array]:
    """Play one round: each player moves to its best response within its three directions.

    Returns
    -------
    now : ScoredPlayers
        After the round.
    gram : array of shape (k, k)
        The gram of the scores before the round.
    gradient_norms : array of shape (k,)
        The norms of the tangent gradients before the round.
    """
    gram = rows.gram(now.scores, now.scores)
    combined = full_product(now.scores, coefficients(gram))
    gradient = 2 * rows.directions(combined)
    gradient_norms = norms(sphere.project_tangent(now.players, gradient))[:, 0]
    uphill = _uphill(now.players, gradient, gradient_norms)
    uphill_scores = rows.scores(uphill)
    moves, move_scores = _orthogonal_moves(now, uphill, uphill_scores)

    # (3, k, d) and (3, m, k): an orthonormal basis of each player's space, and its scores.
    space = jnp.stack([now.players, uphill, moves])
    views = jnp.stack([now.scores, uphill_scores, move_scores])
    slopes = inner(gradient / 2, uphill)[:, 0]
    forms = _quadratic_forms(rows, gram, now.scores, views)
    forms = _normalised(_with_exact_slopes(forms, slopes), space)
    best = jnp.linalg.eigh(forms)[1][:, :, -1].T
    best = best * jnp.where(best[:1] < 0, -1, 1)  # (3, k): keep the sign of the player

    moved = jnp.sum(best[:, :, None] * space, axis=0)
    moved_scores = jnp.sum(best[:, None, :] * views, axis=0)
    step = jnp.sum(best[1:, :, None] * space[1:], axis=0)
    step_scores = jnp.sum(best[1:, None, :] * views[1:], axis=0)
    players, scores = _unit(moved, moved_scores)
    moves, move_scores = _unit(step, step_scores)
    return ScoredPlayers(players, moves, scores, move_scores), gram, gradient_norms


def _uphill(players: jax.Array, gradient: jax.Array, gradient_norms: jax.Array) -> jax.Array:
    """Return each player's tangent gradient as a unit row, or a zero row if the gradient is zero.

    Near an optimum this row is mostly rounding errors. If the compiler computed it twice, with different rounding,
    players would move along a direction other than the one whose scores were taken, and leave the optimum. The
    result of a `cond` is computed once.
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
    now: ScoredPlayers, uphill: jax.Array, uphill_scores: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the moves without their parts along player and gradient, as unit rows, with scores."""
    moves, scores = now.moves, now.move_scores
    for _ in range(2):  # two subtractions are accurate to rounding
        along, up = inner(moves, now.players), inner(moves, uphill)
        moves = moves - along * now.players - up * uphill
        scores = scores - along.T * now.scores - up.T * uphill_scores
        length = norms(moves)
        # Drop a move that is within rounding of the span of the other two directions.
        kept = length > jnp.sqrt(jnp.finfo(moves.dtype).eps)
        unit = jnp.where(kept, length, 1)
        moves, scores = jnp.where(kept, moves / unit, 0), jnp.where(kept.T, scores / unit.T, 0)
    return moves, scores


def _with_exact_slopes(forms: jax.Array, slopes: jax.Array) -> jax.Array:
    """Replace the entries of the forms that the gradient gives more accurately than scores.

    <v_i, A_i s> is half the gradient along s: the length of the gradient for s uphill, and 0 for a move orthogonal
    to player and gradient. Scores of moves follow by linearity, and those of short moves are mostly rounding
    errors.
    """
    first = jnp.stack([forms[:, 0, 0], slopes, jnp.zeros_like(slopes)], axis=1)
    return forms.at[:, 0, :].set(first).at[:, :, 0].set(first)


def _normalised(forms: jax.Array, space: jax.Array) -> jax.Array:
    """Divide the forms (k, 3, 3) by their largest entry, and make missing directions the worst.

    A missing direction, a zero row, has utility 0. While parents still overlap, all other utilities can be
    negative: a player that chose the missing direction would become zero and stay zero.
    """
    size = jnp.max(jnp.abs(forms), axis=(1, 2), keepdims=True)
    forms = forms / jnp.where(size > 0, size, 1)
    missing = ~jnp.any(space != 0, axis=2).T  # (k, 3)
    # Entries are at most 1, so no eigenvalue of three directions is below -3.
    return jnp.where(missing[:, :, None] & jnp.eye(3, dtype=bool)[None], -4, forms)


def _quadratic_forms(rows: Rows, gram: jax.Array, scores: jax.Array, views: jax.Array) -> jax.Array:
    """Return S_i' A_i S_i for each player's basis S_i, shape (k, 3, 3), from scores."""
    # cross[s, j, i] = <v_j, M s_i>: the overlap of direction s of player i with player j.
    cross = jnp.stack([rows.gram(scores, view) for view in views])
    shares = overlap_ratios(jnp.ones_like(gram), jnp.diag(gram), PAPER)
    penalty = jnp.einsum("sji,ji,tji->ist", cross, shares, cross, precision="highest")
    own = jnp.stack(
        [jnp.stack([jnp.diag(rows.gram(left, right)) for right in views]) for left in views]
    )
    forms = jnp.moveaxis(own, 2, 0) - penalty
    return (forms + jnp.swapaxes(forms, 1, 2)) / 2
