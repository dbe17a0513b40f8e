"""Players apart, as trials need them: losses of its own for each trial, a batch of its own for each player."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from eigengame.algorithms import Alpha, Info
from eigengame.experiments._trials import Family
from eigengame.game import DenseRows, Rows


@dataclass(frozen=True)
class Apart:
    """The game as `play_trials` plays it apart: each trial has losses of its own, each player its batch.

    Parameters
    ----------
    algorithm : Alpha
        With `own_batches`, rows come one player's after the other's, shape (k m, d).
    """

    algorithm: Alpha

    def init(self, players: jax.Array) -> Any:
        """Return the start; which broadcasts are lost is drawn from where the players are."""
        state = self.algorithm.init(players)
        if state.key is None:
            return state
        drawn = jax.lax.bitcast_convert_type(jnp.sum(players), jnp.uint32)
        return state._replace(key=jax.random.key_data(jax.random.fold_in(jax.random.key(0), drawn)))

    def update(self, rows: Rows, state: Any) -> tuple[Any, Info]:
        """Move every player once."""
        if self.algorithm.own_batches and isinstance(rows, DenseRows):
            k, d = state.players.shape
            rows = DenseRows(rows.values.reshape(k, -1, d))
        return self.algorithm.update(rows, state)

    def components(self, state: Any) -> jax.Array:
        """Return the players."""
        return self.algorithm.components(state)


def _apart(options: dict[str, Any], step: Any) -> Apart:
    return Apart(Alpha(step, **options))


@cache
def family(**options: Any) -> Family:
    """Return the game with these options for each step size, always the same one."""
    return partial(_apart, options)
