r"""EigenGame Unloaded, called mu: a direction whose expectation over batches has no bias.

From *EigenGame Unloaded: When playing games is better than optimizing* (Gemp et al., 2022), the
successor that replaces the ratio in alpha's penalty, the source of its bias, by the parent itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import Info, Optimizer, StepSize, info_from, move
from eigengame.game import sphere
from eigengame.game.rows import Rows
from eigengame.linalg.products import full_product


class MuState(NamedTuple):
    """Players (k, d), the optimiser's own state, and the updates made so far."""

    players: jax.Array
    memory: Any
    step: jax.Array


@dataclass(frozen=True)
class Mu:
    r"""EigenGame Unloaded: $\Delta_i = M\hat v_i - \sum_{j<i}\langle\hat v_i, M\hat v_j\rangle\hat v_j$.

    $\Delta_i$ is linear in $M$, so that a batch gives it without bias; it is the gradient of no
    utility. Players follow its projection on the tangent space and return to the sphere.

    Parameters
    ----------
    step_size : float or schedule
        The step along $\Delta_i$ (which has no factor 2, so alpha's $\alpha$ is half of it).
    optimizer : optax gradient transformation, optional
        Takes the place of `step_size`.
    """

    step_size: StepSize = 1e-3
    optimizer: Optimizer | None = None

    def __post_init__(self) -> None:
        _check.step_size("step_size", self.step_size)
        _check.optimizer("optimizer", self.optimizer)

    def init(self, players: jax.Array) -> MuState:
        """Return the players where they start."""
        memory = None if self.optimizer is None else self.optimizer.init(players)
        return MuState(players, memory, jnp.zeros((), jnp.int32))

    def update(self, rows: Rows, state: MuState) -> tuple[MuState, Info]:
        """Move every player once, in parallel."""
        players = state.players
        scores = rows.scores(players)
        gram = rows.gram(scores, scores)
        penalty = full_product(jnp.tril(gram, -1), players)
        direction = sphere.project_tangent(players, rows.directions(scores) - penalty)
        moved, memory = move(direction, state, self.step_size, self.optimizer, state.memory)
        info = info_from(gram, direction)
        return MuState(sphere.retract(moved), memory, state.step + 1), info

    def components(self, state: MuState) -> jax.Array:
        """Return the players."""
        return state.players
