"""Hebb's rule with deflation (appendix Clarification of Oja Variants): players learn one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import MAX_COUNT, Info, StepSize, info_from, step_at
from eigengame.game import sphere
from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.rows import Rows
from eigengame.linalg.products import full_product


class HebbState(NamedTuple):
    """Players, the active player, and the history of its reward.

    Attributes
    ----------
    players : array of shape (k, d)
    active : int32
        Index of the player that learns; k when all have finished.
    reward : scalar
        Running reward of the active player.
    steady : int32
        Consecutive updates in which the running reward was steady.
    taken : int32
        Updates of the active player.
    step : int32
        Updates so far.
    """

    players: jax.Array
    active: jax.Array
    reward: jax.Array
    steady: jax.Array
    taken: jax.Array
    step: jax.Array

    def axes(self) -> HebbState:
        """Return the axis names of each array."""
        return HebbState(PLAYERS, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE)


@dataclass(frozen=True)
class HebbDeflation:
    r"""Hebb's rule on rows without their components along the parents.

    $X_{(i)} = X_t(I - \sum_{j<i}\hat v_j\hat v_j^\top)$, then
    $\hat v_i \leftarrow \hat v_i + \eta X_{(i)}^\top X_{(i)}\hat v_i$ and retraction to the sphere, until the
    Rayleigh quotient of player $i$ is steady; then player $i + 1$ learns.

    Parameters
    ----------
    step_size : float or schedule
        $\eta$.
    tolerance : float
        Largest relative change of the running reward in one update that counts as steady.
    patience : int
        Consecutive steady updates that end a player's turn.
    turn : int
        Maximum number of updates in a player's turn; a noisy reward may never be steady.
    smoothing : float
        Weight of earlier rewards in the running reward, in [0, 1). Small batches need a larger one.
    """

    step_size: StepSize = 1e-3
    tolerance: float = 1e-6
    patience: int = 10
    turn: int = 10_000
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        _check.step_size("step_size", self.step_size)
        _check.positive("tolerance", self.tolerance)
        _check.whole("patience", self.patience)
        _check.whole("turn", self.turn)
        _check.fraction("smoothing", self.smoothing)

    def init(self, players: jax.Array) -> HebbState:
        """Return the initial state; the first player is active."""
        zero = jnp.zeros((), jnp.int32)
        return HebbState(players, zero, jnp.zeros((), players.dtype), zero, zero, zero)

    def update(self, rows: Rows, state: HebbState) -> tuple[HebbState, Info]:
        """Move the active player once; activate the next one if its turn is over."""
        players, k = state.players, state.players.shape[0]
        learning = state.active < k
        i = jnp.minimum(state.active, k - 1)
        parents = jnp.where((jnp.arange(k) < i)[:, None], players, 0)

        def deflate(v: jax.Array) -> jax.Array:
            return v - full_product(full_product(v, parents.T), parents)

        own = deflate(players[i][None, :])
        scores = rows.scores(jnp.concatenate([players, own]))
        direction = deflate(rows.directions(scores[:, k:]))
        moved = sphere.retract(players[i][None, :] + step_at(self.step_size, state) * direction)
        gram = rows.gram(scores, scores)
        reward, steady, done = self._steadiness(state, gram[k, k])
        passes = learning & done
        info = info_from(gram[:k, :k], jnp.where((jnp.arange(k) == i)[:, None], direction, 0))
        return (
            HebbState(
                players=players.at[i].set(jnp.where(learning, moved[0], players[i])),
                active=state.active + passes.astype(jnp.int32),
                reward=jnp.where(passes, 0, reward),
                steady=jnp.where(passes, 0, steady),
                taken=jnp.where(passes, 0, state.taken + 1),
                step=state.step + 1,
            ),
            info,
        )

    def components(self, state: HebbState) -> jax.Array:
        """Return the players; those from `state.active` on have not finished."""
        return state.players

    def _steadiness(
        self, state: HebbState, current: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the running reward, the consecutive steady updates, and whether the turn is over."""
        smoothed = self.smoothing * state.reward + (1 - self.smoothing) * current
        reward = jnp.where(state.taken > 0, smoothed, current)
        unchanged = jnp.abs(reward - state.reward) <= self.tolerance * reward
        steady = jnp.where(unchanged & (state.taken > 0), state.steady + 1, 0)
        patience, turn = min(self.patience, MAX_COUNT), min(self.turn, MAX_COUNT)
        return reward, steady, (steady >= patience) | (state.taken + 1 >= turn)
