"""Decentralised EigenGame for vmapped trials: separate losses for each trial, and batches for each player."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from eigengame.algorithms import Alpha, Info
from eigengame.game import DenseRows, Rows
from reproduction.trials import Family

K, D = 8, 50
"""Players and features."""


@dataclass(frozen=True)
class Decentralised:
    """Adapter of `Alpha` for `play_trials`.

    Parameters
    ----------
    algorithm : Alpha
        With `own_batches`, the rows of all players are stacked, shape (k m, d).
    """

    algorithm: Alpha

    def init(self, players: jax.Array) -> Any:
        """Return the initial state. The key of the losses depends on the players, so that trials differ."""
        state = self.algorithm.init(players)
        if state.key is None:
            return state
        drawn = jax.lax.bitcast_convert_type(jnp.sum(players), jnp.uint32)
        return state._replace(key=jax.random.key_data(jax.random.fold_in(jax.random.key(0), drawn)))

    def update(self, rows: Rows, state: Any) -> tuple[Any, Info]:
        """Update every player once."""
        if self.algorithm.own_batches and isinstance(rows, DenseRows):
            k, d = state.players.shape
            rows = DenseRows(rows.values.reshape(k, -1, d))
        return self.algorithm.update(rows, state)

    def components(self, state: Any) -> jax.Array:
        """Return the players."""
        return self.algorithm.components(state)


def _decentralised(options: dict[str, Any], step: Any) -> Decentralised:
    return Decentralised(Alpha(step, **options))


@cache
def family(**options: Any) -> Family:
    """Return the family with these options. Cached, so that it is compiled once."""
    return partial(_decentralised, options)
