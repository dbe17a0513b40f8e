r"""EigenGame Unloaded, or mu: a direction that batches estimate without bias.

From *EigenGame Unloaded: When playing games is better than optimizing* (Gemp et al., 2022). It replaces the ratio
in the penalty of alpha, the source of its bias, by the parent itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import (
    Info,
    Optimizer,
    StepSize,
    info_from,
    move,
    optimizer_axes,
)
from eigengame.game import sphere
from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.rows import Rows
from eigengame.linalg.products import full_product


class MuState(NamedTuple):
    """Players (k, d), the state of the optimizer, and the number of updates so far."""

    players: jax.Array
    optimizer_state: Any
    step: jax.Array

    def axes(self) -> MuState:
        """Return the axis names of each array."""
        return MuState(PLAYERS, optimizer_axes(self.optimizer_state, self.players), WHOLE)


@dataclass(frozen=True)
class Mu:
    r"""EigenGame Unloaded: $\Delta_i = M\hat v_i - \sum_{j<i}\langle\hat v_i, M\hat v_j\rangle\hat v_j$.

    $\Delta_i$ is linear in $M$, so a batch estimates it without bias; it is not the gradient of a utility. Players
    move along its projection on the tangent space, then return to the sphere.

    Parameters
    ----------
    step_size : float or schedule
        The step along $\Delta_i$. It has no factor 2, so the equivalent $\alpha$ of alpha is half of it.
    optimizer : optax gradient transformation, optional
        Replaces `step_size`.
    """

    step_size: StepSize = 1e-3
    optimizer: Optimizer | None = None

    def __post_init__(self) -> None:
        _check.step_size("step_size", self.step_size)
        _check.optimizer("optimizer", self.optimizer)

    def init(self, players: jax.Array) -> MuState:
        """Return the initial state."""
        optimizer_state = None if self.optimizer is None else self.optimizer.init(players)
        return MuState(players, optimizer_state, jnp.zeros((), jnp.int32))

    def update(self, rows: Rows, state: MuState) -> tuple[MuState, Info]:
        """Move every player once, in parallel."""
        players = state.players
        scores = rows.scores(players)
        gram = rows.gram(scores, scores)
        penalty = full_product(jnp.tril(gram, -1), players)
        direction = sphere.project_tangent(players, rows.directions(scores) - penalty)
        moved, optimizer_state = move(
            direction, state, self.step_size, self.optimizer, state.optimizer_state
        )
        info = info_from(gram, direction)
        return MuState(sphere.retract(moved), optimizer_state, state.step + 1), info

    def components(self, state: MuState) -> jax.Array:
        """Return the players."""
        return state.players
