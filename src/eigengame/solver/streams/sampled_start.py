"""Where the players of a long batch begin: at the equilibrium of a sample of its rows.

Rounds on a sample cost little. Players that begin there need one round on the batch itself, where players at random
need four. A sample has one row of each of many parts of the batch, drawn at random: rows may be in any order.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.krylov_round import krylov_round
from eigengame.game.memory import RememberedRows
from eigengame.game.rows import DenseRows
from eigengame.game.two_part_rows import TwoPartRows
from eigengame.linalg.orthonormal import orthonormalise, reorthonormalise
from eigengame.linalg.quick_jit import quick_jit

ROUNDS = 4
"""Rounds on the sample."""

SHARE = 32
"""Rows of a batch for each row of the sample, if there are many rows."""

EACH = 64
"""Least number of rows of the sample for each player, as far as the batch has so many."""


def sampled_places(rows: int, players: int) -> np.ndarray:
    """Return places of the rows of a sample, in ascending order: one at random in each of equal parts."""
    count = min(rows, max(rows // SHARE, EACH * players))
    ends = np.linspace(0, rows, count + 1)
    drawn = ends[:-1] + np.random.default_rng(count).random(count) * np.diff(ends)
    return np.minimum(drawn.astype(np.int32), rows - 1)


def state_at_sample(
    game: Remembered, rows: DenseRows, state: RememberedState
) -> tuple[RememberedState, int]:
    """Return the state of a game without rows, its players at the equilibrium of a sample, and the sample's size."""
    places = sampled_places(rows.values.shape[0], len(state.memory.players))
    players = _played(game.center, rows, state, places)
    return state._replace(memory=state.memory._replace(players=players)), len(places)


@partial(quick_jit, static_argnums=0)
def _played(
    center: bool, rows: DenseRows, state: RememberedState, places: jax.Array
) -> jax.Array:
    """Return players (K, d) after the rounds on a sample."""
    sample = DenseRows(rows.values[places], rows.constant()[places, 0])
    game = RememberedRows.of(TwoPartRows.of(sample), state.memory, center=center)

    def play(_: int, players: jax.Array) -> jax.Array:
        return reorthonormalise(krylov_round(game, players, game.scores(players))[0])

    return jax.lax.fori_loop(0, ROUNDS, play, state.memory.players)


@partial(quick_jit, static_argnums=(0, 1))
def random_players(count: int, d: int, seed: int) -> jax.Array:
    """Return random orthonormal players (K, d) in float32, drawn on the device."""
    return orthonormalise(jax.random.normal(jax.random.key(seed), (count, d), jnp.float32))
