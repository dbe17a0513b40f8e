"""Oja's algorithm (Alg. Oja): Hebb's rule for all players, then QR with the paper's sign rule."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from eigengame import _check
from eigengame.algorithms._base import Info, PlayersState, StepSize, info_from, move, start
from eigengame.game.rows import Rows
from eigengame.linalg.orthonormal import orthonormalise


@dataclass(frozen=True)
class Oja:
    r"""Oja's algorithm: $\hat V \leftarrow \mathrm{QR}(\hat V + \eta X_t^\top X_t\hat V)$.

    The mask that the paper's listing defines is never used in it, nor here.

    Parameters
    ----------
    step_size : float or schedule
        $\eta$.
    """

    step_size: StepSize = 1e-3

    def __post_init__(self) -> None:
        _check.step_size("step_size", self.step_size)

    def init(self, players: jax.Array) -> PlayersState:
        """Return the players where they start."""
        return start(players)

    def update(self, rows: Rows, state: PlayersState) -> tuple[PlayersState, Info]:
        """Move every player once and make them orthonormal again."""
        scores = rows.scores(state.players)
        direction = rows.directions(scores)
        moved, _ = move(direction, state, self.step_size)
        info = info_from(rows.gram(scores, scores), direction)
        return PlayersState(orthonormalise(moved), state.step + 1), info

    def components(self, state: PlayersState) -> jax.Array:
        """Return the players."""
        return state.players
