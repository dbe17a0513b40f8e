"""Hebb's rule with deflation (appendix Clarification of Oja Variants): one player after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import LONGEST, Info, StepSize, info_from, step_at
from eigengame.game import sphere
from eigengame.game.rows import Rows
from eigengame.linalg.products import full_product


class HebbState(NamedTuple):
    """Players, whose turn it is, and how steady that player's reward has been.

    Attributes
    ----------
    players : array of shape (k, d)
    active : int32
        The player that learns; k when all have learnt.
    reward : scalar
        The active player's running reward.
    steady : int32
        Updates in a row in which it hardly changed.
    taken : int32
        Updates that the active player has had.
    step : int32
        Updates made so far.
    """

    players: jax.Array
    active: jax.Array
    reward: jax.Array
    steady: jax.Array
    taken: jax.Array
    step: jax.Array


@dataclass(frozen=True)
class HebbDeflation:
    r"""Hebb's rule on rows from which the parents have been subtracted.

    $X_{(i)} = X_t(I - \sum_{j<i}\hat v_j\hat v_j^\top)$, then
    $\hat v_i \leftarrow \hat v_i + \eta X_{(i)}^\top X_{(i)}\hat v_i$ and back to the sphere, until the
    Rayleigh quotient of player $i$ has stabilised; then it is the turn of $i + 1$.

    Parameters
    ----------
    step_size : float or schedule
        $\eta$.
    tolerance : float
        Relative change of the reward, per update, that counts as steady.
    patience : int
        Steady updates in a row that end a player's turn.
    turn : int
        Updates after which a player's turn ends in any case: noise may never be steady.
    smoothing : float
        Weight of the past in the running reward, in [0, 1): more for small batches.
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
        """Return the players where they start, the first one to move."""
        zero = jnp.zeros((), jnp.int32)
        return HebbState(players, zero, jnp.zeros((), players.dtype), zero, zero, zero)

    def update(self, rows: Rows, state: HebbState) -> tuple[HebbState, Info]:
        """Move the active player once; pass the turn on if it is done."""
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
        """Return the players; those from `state.active` on have not had their turn."""
        return state.players

    def _steadiness(
        self, state: HebbState, seen: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the running reward, the steady updates in a row, and whether the turn is over."""
        smoothed = self.smoothing * state.reward + (1 - self.smoothing) * seen
        reward = jnp.where(state.taken > 0, smoothed, seen)
        hardly = jnp.abs(reward - state.reward) <= self.tolerance * reward
        steady = jnp.where(hardly & (state.taken > 0), state.steady + 1, 0)
        patience, turn = min(self.patience, LONGEST), min(self.turn, LONGEST)
        return reward, steady, (steady >= patience) | (state.taken + 1 >= turn)
