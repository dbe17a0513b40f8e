r"""Where the players of a long batch begin: near the components of a sample of its rows.

Players at random need four rounds on a first batch. These players are multiplied a few times by $M$ of the sample,
which costs little, and need one round on the batch itself. A sample has one row of each of many parts of the batch,
drawn at random: rows may be in any order. The rows of largest norm are added, with the weight that they have in the
batch: a few of them may hold most of the variance of some features.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.memory import RememberedRows
from eigengame.game.rows import DenseRows
from eigengame.game.two_part_rows import TwoPartRows
from eigengame.linalg.orthonormal import orthonormalise_nearly, reorthonormalise, unit_rows
from eigengame.linalg.products import row_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver.rows.moments import Moments, no_moments
from eigengame.solver.streams.probe_sums import ProbeSums, sums_without_rows

POWERS = 5
"""Multiplications by M of the sample. Further ones change the components by less than its randomness does."""

MIXED = 2.0**-6
"""Share of the random players that is added to those of a sample. A feature may be zero in all of its rows, and
players that are zero there too would never find it."""

HEAVY = 16
"""Rows of large norm in a sample for each player."""

SHARE = 32
"""Rows of a batch for each row of the sample, if there are many rows."""

EACH = 64
"""Least number of rows of the sample for each player, as far as the batch has so many."""


@lru_cache(maxsize=4)
def sampled_places(rows: int, players: int) -> np.ndarray:
    """Return places of the rows of a sample, in ascending order: one at random in each of equal parts."""
    count = min(rows, max(rows // SHARE, EACH * players))
    ends = np.linspace(0, rows, count + 1).astype(np.int64)
    places = np.random.default_rng(count).integers(ends[:-1], ends[1:]).astype(np.int32)
    places.flags.writeable = False  # it is kept
    return places


def players_at_sample(
    center: bool, full: bool, rows: DenseRows, state: RememberedState, places: jax.Array
) -> jax.Array:
    """Return orthonormal players (K, d) near the components of a sample, for a game without rows.

    Parameters
    ----------
    center : bool
        Whether rows are centred.
    full : bool
        Whether all rows have a weight above 0.
    rows : DenseRows
    state : RememberedState
        With players at random.
    places : array of integers
        Rows of the sample (`sampled_places`).
    """
    if not full:
        places = _counted_places(rows, places)
    chosen = _with_heavy_rows(rows, places, HEAVY * len(state.memory.players), center=center)
    sample = RememberedRows.of(TwoPartRows.of(chosen), state.memory, center=center, empty=True)

    def multiply(_: int, players: jax.Array) -> jax.Array:
        return orthonormalise_nearly(sample.directions(sample.scores(players)), steps=1)

    start = state.memory.players
    players = jax.lax.fori_loop(0, POWERS, multiply, start)
    players = orthonormalise_nearly(unit_rows(players) + MIXED * start)
    return reorthonormalise(reorthonormalise(players))


def _counted_places(rows: DenseRows, places: jax.Array) -> jax.Array:
    """Return places of a sample moved to rows with a weight above 0."""
    counted = jnp.cumsum(rows.constant()[:, 0] > 0)
    share = counted[-1] / len(counted)
    wanted = jnp.minimum((places * share).astype(counted.dtype), counted[-1] - 1)
    return jnp.searchsorted(counted, wanted, side="right")


def _with_heavy_rows(rows: DenseRows, places: jax.Array, count: int, *, center: bool) -> DenseRows:
    """Return a sample and the row of largest norm of each of `count` parts, which together have their own weight.

    Neighbouring rows belong to different parts. Norms are about the mean of the sample if rows are centred.
    """
    constant, m = rows.constant(), rows.values.shape[0]
    values, roots = rows.values[places], constant[places, 0]
    wide = rows.values.astype(jnp.float32)
    if center:
        sample = values.astype(jnp.float32)
        mean = row_product(roots[:, None], sample)[0] / jnp.maximum(jnp.sum(jnp.square(roots)), 1)
        wide = wide - constant * mean[None, :]
    count = min(count | 1, m)  # odd: sizes may be periodic
    squares = jnp.pad(jnp.sum(jnp.square(wide), axis=1), (0, -m % count), constant_values=-1)
    heavy = jnp.argmax(squares.reshape(-1, count), axis=0) * count + jnp.arange(count)
    weight = math.sqrt(len(places) / m)
    heavy_values = (weight * rows.values[heavy]).astype(values.dtype)
    return DenseRows(
        jnp.concatenate([values, heavy_values]),
        jnp.concatenate([roots, weight * constant[heavy, 0]]),
    )


@partial(quick_jit, static_argnums=(0, 1, 2))
def begun(
    game: Remembered, k: int, d: int, seed: np.uint32, draws: jax.Array | None
) -> tuple[RememberedState, Moments, ProbeSums | None]:
    """Return a game without rows in float32, for these probes (r, d).

    Players are drawn on the device. They are of about unit length, and not orthonormal (`players_at_sample`).
    """
    size = game.players_for(k, d), d
    players = jax.random.normal(jax.random.key(seed), size, jnp.float32) / math.sqrt(d)
    sums = None if draws is None else sums_without_rows(draws, jnp.zeros_like(draws), ONE_DEVICE)
    return game.empty_state(players, k), no_moments(d, np.float32), sums
