r"""The generalised Hebbian algorithm (Sanger, 1989), with the factor 2 of Prop. gha_equiv_eigengame."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from eigengame.algorithms._base import Info, PlayersAlgorithm, PlayersState, info_from, move
from eigengame.game.rows import Rows
from eigengame.linalg.products import full_product


def gha_direction(rows: Rows, players: jax.Array) -> tuple[jax.Array, jax.Array]:
    r"""Return the GHA direction (k, d) and the gram of the players' scores (k, k).

    $\Delta_i = 2[M\hat v_i - \sum_{j \le i}\langle\hat v_i, M\hat v_j\rangle\hat v_j]$, which is not the gradient
    of any function (Prop. gha_not_grad).
    """
    scores = rows.scores(players)
    gram = rows.gram(scores, scores)
    return 2 * (rows.directions(scores) - full_product(jnp.tril(gram), players)), gram


@dataclass(frozen=True)
class GHA(PlayersAlgorithm):
    r"""Sanger's rule: $\hat v_i \leftarrow \hat v_i + \alpha\Delta_i$, without retraction to the sphere.

    The term $j = i$ keeps the norm near 1 while $\alpha\Lambda_{11}$ is well below 1; a larger step diverges.

    Parameters
    ----------
    step_size : float or schedule
        $\alpha$.
    """

    def update(self, rows: Rows, state: PlayersState) -> tuple[PlayersState, Info]:
        """Move every player once, in parallel."""
        direction, gram = gha_direction(rows, state.players)
        moved, _ = move(direction, state, self.step_size)
        return PlayersState(moved, state.step + 1), info_from(gram, direction)
