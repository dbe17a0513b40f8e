"""Oja's algorithm (Alg. Oja): Hebb's rule for all players, then QR with the paper's sign rule."""

from __future__ import annotations

from dataclasses import dataclass

from eigengame.algorithms._base import Info, PlayersAlgorithm, PlayersState, info_from, move
from eigengame.game.rows import Rows
from eigengame.linalg.orthonormal import orthonormalise


@dataclass(frozen=True)
class Oja(PlayersAlgorithm):
    r"""Oja's algorithm: $\hat V \leftarrow \mathrm{QR}(\hat V + \eta X_t^\top X_t\hat V)$.

    The paper's listing defines a mask but does not use it; neither does this implementation.

    Parameters
    ----------
    step_size : float or schedule
        $\eta$.
    """

    def update(self, rows: Rows, state: PlayersState) -> tuple[PlayersState, Info]:
        """Move every player once, then orthonormalise."""
        scores = rows.scores(state.players)
        direction = rows.directions(scores)
        moved, _ = move(direction, state, self.step_size)
        info = info_from(rows.gram(scores, scores), direction)
        return PlayersState(orthonormalise(moved), state.step + 1), info
