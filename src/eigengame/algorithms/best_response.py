"""Best response: all players in parallel, each to its exact optimum nearby, on full batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import Info
from eigengame.game.best_response import best_responses, standing
from eigengame.game.rows import Rows
from eigengame.game.utilities import penalties, rewards


class BestResponseState(NamedTuple):
    """Players and their previous moves, (k, d) each, and the updates made so far."""

    players: jax.Array
    moves: jax.Array
    step: jax.Array


@dataclass(frozen=True)
class BestResponse:
    """Exact best responses over span{own vector, tangent gradient, previous move}.

    No step size, no orthogonalisation, the pace of conjugate gradients. Made for full batches: on a
    small batch the best response is to that batch alone (see `remembered` for streams).

    Parameters
    ----------
    rounds : int
        Rounds for each update: an update costs two products more than its rounds do.
    """

    rounds: int = 10

    def __post_init__(self) -> None:
        _check.whole("rounds", self.rounds)

    def init(self, players: jax.Array) -> BestResponseState:
        """Return the players where they start, with no move made."""
        return BestResponseState(players, jnp.zeros_like(players), jnp.zeros((), jnp.int32))

    def update(self, rows: Rows, state: BestResponseState) -> tuple[BestResponseState, Info]:
        """Play some rounds on the rows; the info is that of the last one."""
        now = standing(rows, state.players, state.moves)
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
