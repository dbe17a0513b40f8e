"""Matrix Krasulina (Tang, 2019): the top-k subspace, by moves orthogonal to it and QR."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from eigengame.algorithms._base import Info, PlayersAlgorithm, PlayersState, info_from, move
from eigengame.game.rows import Rows
from eigengame.linalg.orthonormal import orthonormalise
from eigengame.linalg.products import full_product


@dataclass(frozen=True)
class Krasulina(PlayersAlgorithm):
    r"""Matrix Krasulina: $\hat V \leftarrow \mathrm{QR}(\hat V + \eta(I - \hat V\hat V^\top)M\hat V)$.

    The direction is orthogonal to the span of the players. So they converge to the top-k subspace but do not rotate
    within it: use `game.settle` to get components, or `metrics.match` to compare players with true components.

    Parameters
    ----------
    step_size : float or schedule
        $\eta$.
    """

    def init(self, players: jax.Array) -> PlayersState:
        """Return the initial state, with orthonormalised players, which the rule assumes."""
        return super().init(orthonormalise(players))

    def update(self, rows: Rows, state: PlayersState) -> tuple[PlayersState, Info]:
        """Move the subspace once, then orthonormalise."""
        scores = rows.scores(state.players)
        gram = rows.gram(scores, scores)
        direction = rows.directions(scores) - full_product(gram, state.players)
        moved, _ = move(direction, state, self.step_size)
        info = info_from(gram, direction)
        return PlayersState(orthonormalise(moved), state.step + 1), info
