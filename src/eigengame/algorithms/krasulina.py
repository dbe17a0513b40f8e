"""Matrix Krasulina (Tang, 2019): the top-k subspace, by moves that leave it and QR."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from eigengame import _check
from eigengame.algorithms._base import Info, PlayersState, StepSize, info_from, move, start
from eigengame.game.rows import Rows
from eigengame.linalg.orthonormal import orthonormalise
from eigengame.linalg.products import full_product


@dataclass(frozen=True)
class Krasulina:
    r"""Matrix Krasulina: $\hat V \leftarrow \mathrm{QR}(\hat V + \eta(I - \hat V\hat V^\top)M\hat V)$.

    The direction has no part within the players' span, so the players find the top-k subspace but do
    not turn within it: match them to the truth before measuring angles (`metrics.match`), and settle
    them (`game.settle.settle`) to have components.

    Parameters
    ----------
    step_size : float or schedule
        $\eta$.
    """

    step_size: StepSize = 1e-3

    def __post_init__(self) -> None:
        _check.step_size("step_size", self.step_size)

    def init(self, players: jax.Array) -> PlayersState:
        """Return the players made orthonormal: the rule assumes it."""
        return start(orthonormalise(players))

    def update(self, rows: Rows, state: PlayersState) -> tuple[PlayersState, Info]:
        """Move the subspace once and make the players orthonormal again."""
        scores = rows.scores(state.players)
        gram = rows.gram(scores, scores)
        direction = rows.directions(scores) - full_product(gram, state.players)
        moved, _ = move(direction, state, self.step_size)
        info = info_from(gram, direction)
        return PlayersState(orthonormalise(moved), state.step + 1), info

    def components(self, state: PlayersState) -> jax.Array:
        """Return the players: a basis of the subspace, in no order."""
        return state.players
