"""Best response: each player moves to its exact optimum in a small space, in parallel, on full batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import Info
from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.best_response import best_responses, with_scores
from eigengame.game.rows import Rows
from eigengame.game.utilities import penalties, rewards


class BestResponseState(NamedTuple):
    """Players and their previous moves, (k, d) each, and the number of updates so far."""

    players: jax.Array
    moves: jax.Array
    step: jax.Array

    def axes(self) -> BestResponseState:
        """Return the axis names of each array."""
        return BestResponseState(PLAYERS, PLAYERS, WHOLE)


@dataclass(frozen=True)
class BestResponse:
    """Exact best responses over span{own vector, tangent gradient, previous move}.

    No step size and no orthogonalisation; converges like conjugate gradients. Meant for full batches: on a small
    batch, players respond to that batch alone (see `remembered` for streams).

    Parameters
    ----------
    rounds : int
        Rounds per update. An update costs two products more than its rounds.
    """

    rounds: int = 10

    def __post_init__(self) -> None:
        _check.whole("rounds", self.rounds)

    def init(self, players: jax.Array) -> BestResponseState:
        """Return the initial state, without previous moves."""
        return BestResponseState(players, jnp.zeros_like(players), jnp.zeros((), jnp.int32))

    def update(self, rows: Rows, state: BestResponseState) -> tuple[BestResponseState, Info]:
        """Play `rounds` rounds on the rows; the info is that of the last round."""
        now = with_scores(rows, state.players, state.moves)
        k = state.players.shape[0]
        nothing = jnp.zeros((k, k), now.players.dtype), jnp.zeros(k, now.players.dtype)
        now, gram, norms = jax.lax.fori_loop(
            0, self.rounds, lambda _, carry: best_responses(rows, carry[0]), (now, *nothing)
        )
        info = Info(rewards(gram), penalties(gram), norms)
        return BestResponseState(now.players, now.moves, state.step + 1), info

    def components(self, state: BestResponseState) -> jax.Array:
        """Return the players."""
        return state.players
