"""Wide rows in Gram space, with the inner products of the players carried along: `Stream.overlaps`.

Players are on the device or in host memory. Kernels read rows and players once for each product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.in_gram_space import REMEASURED, current_overlaps
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.rows import DenseRows
from eigengame.linalg import offload
from eigengame.linalg.offload import ON_HOST as BLOCKS_ON_HOST
from eigengame.linalg.orthonormal import reorthonormalise, whiten
from eigengame.linalg.products import full_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.linalg.random_directions import random_orthonormal
from eigengame.linalg.wide import overlaps_of
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.rows.moments import (
    Moments,
    add_moments,
    batch_moments,
    merge_moments,
    no_moments,
)
from eigengame.solver.streams.batch_step import after_batch
from eigengame.solver.streams.probe_sums import ProbeSums, add_batch, no_sums_on_device
from eigengame.solver.streams.probes_in_span import ProbesInSpan, fits, with_probes
from eigengame.solver.streams.stream import Snapshot, Stream


def begin_with_overlaps(
    game: Remembered, k: int, d: int, dtype: Any, seed: int, placement: Placement, probes: int = 0
) -> Stream:
    """Return a game without rows, its players drawn on the device."""
    state = _draw_on_device(game, k, d, np.dtype(dtype), seed)
    overlaps = with_probes(_overlaps(game.wide(state)), jnp.zeros(probes, dtype))
    begun = _without_rows(state, k, d, dtype, overlaps)
    here = state.memory.players.sharding
    # Committed to this device, as rows of torch are: otherwise the first two updates would compile twice.
    begun = begun._replace(probes=no_sums_on_device(probes, d, dtype, seed))
    state, moments, overlaps, sums = jax.device_put(
        (begun.state, begun.moments, begun.overlaps, begun.probes), here
    )
    return begun._replace(state=state, moments=moments, overlaps=overlaps, probes=sums)


@partial(quick_jit, static_argnums=(0, 1, 2, 3))
def _draw_on_device(game: Remembered, k: int, d: int, dtype: Any, seed: int) -> RememberedState:
    """Return an empty memory with random orthonormal players; draws are nearly orthogonal, since d is large."""
    draws = jax.random.normal(jax.random.key(seed), (game.players_for(k, d), d), dtype)
    turn, *_ = whiten(full_product(draws, draws.T) / d)
    return game.empty_state(full_product(turn, draws) / math.sqrt(d), k)


def _without_rows(
    state: RememberedState, k: int, d: int, dtype: Any, overlaps: jax.Array
) -> Stream:
    """Return a game without rows. The first snapshots are empty, because a copy of the players takes memory."""
    start: Snapshot = (0, state.memory.players[:k, :0])
    return Stream(state, no_moments(d, dtype), 0, (start, start), overlaps)


def take_with_overlaps(
    game: Remembered, stream: Stream, rows: DenseRows, count: int, placement: Placement = ONE_DEVICE
) -> Stream:
    """Version of `batch_step.take` in Gram space, with overlaps carried along."""
    state, moments, overlaps, probes = step_with_overlaps(
        game, rows, stream.state, stream.moments, stream.overlaps, stream.probes
    )
    stream = stream._replace(probes=probes)
    return after_batch(stream, state, moments, count, lambda: game.components(state), overlaps)


@partial(jax.jit, static_argnums=0)
def step_with_overlaps(
    game: Remembered,
    rows: DenseRows,
    state: RememberedState,
    moments: Moments,
    overlaps: jax.Array,
    probes: ProbeSums | None = None,
) -> tuple[RememberedState, Moments, jax.Array, ProbeSums | None]:
    """Return state, moments, overlaps and probes after one batch."""
    wide, known, along = game.wide(state), *jnp.split(overlaps, [len(overlaps)], axis=1)
    known = current_overlaps(wide, rows, known, state.step)
    own = batch_moments(rows)
    if probes is not None and fits(wide, rows, probes, overlaps):
        given = jnp.concatenate([known, along], axis=1)
        together = ProbesInSpan(probes, rows, moments, given, center=game.center)
        state, known = game.update_in_span(rows, state, known, together.operations)
        probes, overlaps = together.after(known)
    else:
        state, known = game.update_in_span(rows, state, known)
        overlaps = jnp.concatenate([known, along], axis=1)
        if probes is not None:
            probes = add_batch(probes, rows, moments, own, center=game.center)
    moments = merge_moments(moments, own)
    return _with_mean(game, state, moments), moments, overlaps, probes


def _with_mean(game: Remembered, state: RememberedState, moments: Moments) -> RememberedState:
    """Return the state with the mean of the moments, which is more accurate than the one in Gram space."""
    if not game.center:
        return state
    return state._replace(memory=state.memory._replace(mean=moments.mean))


def begin_offloaded(
    game: Remembered, k: int, d: int, dtype: Any, seed: int, placement: Placement, probes: int = 0
) -> Stream:
    """Return a game without rows, its players in host memory; there are no probes."""
    players = random_orthonormal(game.players_for(k, d), d, dtype, seed)
    state = game.empty_state(players, k)
    return _without_rows(state, k, d, dtype, game.overlaps(state, BLOCKS_ON_HOST))


def take_offloaded(
    game: Remembered, stream: Stream, rows: DenseRows, count: int, placement: Placement = ONE_DEVICE
) -> Stream:
    """Version of `take_with_overlaps` for players in host memory. Only small problems are compiled."""
    state, overlaps = stream.state, stream.overlaps
    if int(state.step) % REMEASURED == 0:
        overlaps = game.overlaps(state, BLOCKS_ON_HOST)
    assert overlaps is not None
    state, overlaps = game.update_in_span(rows, state, overlaps, BLOCKS_ON_HOST)
    moments = add_moments(stream.moments, rows)
    state = _with_mean(game, state, moments)
    # A copy: a view would keep all players in memory.
    return after_batch(
        stream, state, moments, count, lambda: np.array(game.components(state)), overlaps
    )


def _end(stream: Stream, orthonormalise: Callable[[Any], Any]) -> Stream:
    """Return the stream with orthonormal players, and without overlaps.

    Inner products of rows lose digits if rows are much alike, and players are only as orthonormal as these.
    """
    memory = stream.state.memory
    memory = memory._replace(players=orthonormalise(memory.players))
    return stream._replace(state=stream.state._replace(memory=memory), overlaps=None)


_overlaps = quick_jit(overlaps_of)

end_with_overlaps = partial(_end, orthonormalise=quick_jit(reorthonormalise))
"""`_end` for players on the device."""

end_offloaded = partial(_end, orthonormalise=offload.reorthonormalise)
"""`_end` for players in host memory."""
