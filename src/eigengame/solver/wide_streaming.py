"""The remembered game over rows so wide that it keeps to Gram space, with players on the device or on the host.

The same game as `streaming` plays, and it ends as one of its streams: what differs is that inner products
of players are carried along instead of being measured, and where the players lie.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.in_gram_space import REMEASURED, current_overlaps
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.rows import DenseRows
from eigengame.linalg import offload
from eigengame.linalg.autotune import jit_without_autotune
from eigengame.linalg.offload import ON_HOST
from eigengame.linalg.orthonormal import reorthonormalise, whiten
from eigengame.linalg.products import full_product
from eigengame.linalg.wide import overlaps_of
from eigengame.solver.moments import (
    Moments,
    add_moments,
    batch_moments,
    merge_moments,
    no_moments,
)
from eigengame.solver.passes import Passes
from eigengame.solver.streaming import Stream, drawn, so_far


class WideStream(NamedTuple):
    """A game in progress, and what is known of its vectors.

    Attributes
    ----------
    seen : Stream
    overlaps : array of shape (K, K), or (K + 1, K + 1) where rows are centred
        Of players and mean.
    """

    seen: Stream
    overlaps: jax.Array


def one_pass(
    algorithm: Remembered,
    reading: Passes,
    k: int,
    d: int,
    dtype: Any,
    seed: int,
    *,
    hosted: bool = False,
) -> Stream:
    """Return the game after one pass over the data; `hosted` says whether players stay on the host."""
    start = _begun_on_host if hosted else begun
    step = _take_on_host if hosted else take
    wide = reading.fold(
        partial(step, algorithm),
        start(algorithm, k, d, dtype, seed),
        task="remembered",
        tell=lambda wide: so_far(wide.seen),
    )
    # Players are as orthonormal as inner products of rows tell, which lose digits where rows are much alike.
    tidy = offload.reorthonormalise if hosted else _tidied
    state = wide.seen.state
    memory = state.memory._replace(players=tidy(state.memory.players))
    return wide.seen._replace(state=state._replace(memory=memory))


_tidied, _overlaps = jit_without_autotune(reorthonormalise), jit_without_autotune(overlaps_of)


def begun(algorithm: Remembered, k: int, d: int, dtype: Any, seed: int) -> WideStream:
    """Return a game in which nothing has been seen, its players drawn on the device."""
    state = _drawn_there(algorithm, k, d, np.dtype(dtype), seed)
    wide = _of_nothing(state, k, d, dtype, _overlaps(algorithm.wide(state)))
    seen, here = wide.seen, state.memory.players.sharding
    # Told to stay here, as rows of torch are: else the first update would be compiled for what may lie anywhere,
    # and the second once more.
    state, moments, overlaps = jax.device_put((seen.state, seen.moments, wide.overlaps), here)
    return WideStream(seen._replace(state=state, moments=moments), overlaps)


def _begun_on_host(algorithm: Remembered, k: int, d: int, dtype: Any, seed: int) -> WideStream:
    """Return the same with its players on the host."""
    state = algorithm.empty_state(drawn(algorithm.players_for(k, d), d, dtype, seed), k)
    return _of_nothing(state, k, d, dtype, algorithm.overlaps(state, ON_HOST))


def _of_nothing(
    state: RememberedState, k: int, d: int, dtype: Any, overlaps: jax.Array
) -> WideStream:
    """Return a game that begins; there is nothing to look back at, and a copy of players would take room."""
    start = (0, state.memory.players[:k, :0])
    return WideStream(Stream(state, no_moments(d, dtype), 0, (start, start)), overlaps)


@partial(jit_without_autotune, static_argnums=(0, 1, 2, 3))
def _drawn_there(algorithm: Remembered, k: int, d: int, dtype: Any, seed: int) -> RememberedState:
    """Return an empty memory with random orthonormal players: nearly orthogonal as drawn, d being large."""
    draws = jax.random.normal(jax.random.key(seed), (algorithm.players_for(k, d), d), dtype)
    turn, _ = whiten(full_product(draws, draws.T) / d)
    return algorithm.empty_state(full_product(turn, draws) / math.sqrt(d), k)


def take(algorithm: Remembered, wide: WideStream, rows: DenseRows, count: int) -> WideStream:
    """Return the game after one more batch, of which `count` rows are not padding."""
    seen = wide.seen
    state, moments, overlaps = step(algorithm, rows, seen.state, seen.moments, wide.overlaps)
    return WideStream(_looked(algorithm, seen, state, moments, count), overlaps)


@partial(jax.jit, static_argnums=0)
def step(
    algorithm: Remembered,
    rows: DenseRows,
    state: RememberedState,
    moments: Moments,
    overlaps: jax.Array,
) -> tuple[RememberedState, Moments, jax.Array]:
    """Return state, moments and overlaps after one batch."""
    overlaps = current_overlaps(algorithm.wide(state), rows, overlaps, state.step)
    state, overlaps = algorithm.update_in_span(rows, state, overlaps)
    moments = merge_moments(moments, batch_moments(rows))
    return _with_mean(algorithm, state, moments), moments, overlaps


def _with_mean(algorithm: Remembered, state: RememberedState, moments: Moments) -> RememberedState:
    """Return the state with the mean that moments have: a basis leaves out what is within rounding of the rest."""
    if not algorithm.center:
        return state
    return state._replace(memory=state.memory._replace(mean=moments.mean))


def _take_on_host(
    algorithm: Remembered, wide: WideStream, rows: DenseRows, count: int
) -> WideStream:
    """Return the same where players are on the host: only small things are compiled as one."""
    seen, state, overlaps = wide.seen, wide.seen.state, wide.overlaps
    if int(state.step) % REMEASURED == 0:
        overlaps = algorithm.overlaps(state, ON_HOST)
    state, overlaps = algorithm.update_in_span(rows, state, overlaps, ON_HOST)
    moments = add_moments(seen.moments, rows)
    state = _with_mean(algorithm, state, moments)
    return WideStream(_looked(algorithm, seen, state, moments, count), overlaps)


def _looked(
    algorithm: Remembered, seen: Stream, state: RememberedState, moments: Moments, count: int
) -> Stream:
    """Return a stream after a batch, with a look at the components where it is time for one."""
    rows, looks = seen.rows + count, seen.looks
    if rows >= max(2 * looks[1][0], 1):
        components = algorithm.components(state)
        # Of NumPy's a view, which would keep all players.
        kept: Any = components if isinstance(components, jax.Array) else np.array(components)
        looks = (looks[1], (rows, kept))
    return Stream(state, moments, rows, looks)
