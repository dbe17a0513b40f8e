"""The update of a stream by one batch, in score space or in Gram space.

Each update measures the inner products of the players. Rows on the host are played by NumPy, and all others by a
program that is compiled once for each shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.csr_rows import CSRRows
from eigengame.game.host_rows import HostRows
from eigengame.game.rows import DenseRows
from eigengame.game.two_part_rows import TwoPartRows
from eigengame.linalg.quick_jit import quick_jit
from eigengame.linalg.random_directions import random_orthonormal
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.passes.host_arrays import on_device, on_host
from eigengame.solver.rows.moments import (
    Moments,
    batch_moments,
    fade_moments,
    kept_moments,
    merge_moments,
    no_moments,
)
from eigengame.solver.streams.probe_sums import ProbeSums, add_batch, fade_sums, no_sums
from eigengame.solver.streams.stream import Stream, in_host_memory


def begin(
    game: Remembered,
    k: int,
    d: int,
    dtype: Any,
    seed: int,
    placement: Placement = ONE_DEVICE,
    probes: int = 0,
) -> Stream:
    """Return a game without rows, its players and probes drawn at random."""
    players = random_orthonormal(game.players_for(k, d), d, dtype, seed)
    state = placement.state(game.empty_state(jax.device_put(players), k))
    start = (0, placement.players(players[:k]))
    moments, sums = no_moments(d, dtype, placement), no_sums(probes, d, dtype, seed, placement)
    return Stream(state, moments, 0, (start, start), probes=sums)


def take(
    game: Remembered, stream: Stream, rows: Any, count: int, placement: Placement = ONE_DEVICE
) -> Stream:
    """Return the game after one more batch, with `count` rows of a weight above 0."""
    now = stream.state, stream.moments, stream.probes
    after: Any
    if isinstance(rows, HostRows):
        # The threads of BLAS belong to the whole process: more of them would change the bits of other fits.
        after = on_host(partial(_step_on_host, game), rows, *now, all_threads=False)
    elif isinstance(rows, CSRRows):
        after = on_device(on_host(partial(_step_on_host, game), rows, *now))
    else:
        after = step(game, placement, rows, *now)
    state, moments, probes, components = after
    return after_batch(stream._replace(probes=probes), state, moments, count, lambda: components)


def play_batch(
    game: Remembered,
    placement: Placement,
    rows: Any,
    state: RememberedState,
    moments: Moments,
    probes: ProbeSums | None,
    in_parts: bool = False,
    empty: bool = False,
) -> tuple[RememberedState, Moments, ProbeSums | None, jax.Array]:
    """Return state, moments, probes and components after one batch.

    With `in_parts`, dense rows are multiplied with players in two parts of bfloat16. With `empty`, there are no
    rows before the batch.
    """
    counted = rows
    if game.forget != 1:
        counted, keep = game.fade(rows, moments.weight.dtype)
        moments, probes = fade_moments(moments, keep), fade_sums(probes, keep)
    own = batch_moments(counted)
    if probes is not None:
        probes = add_batch(probes, counted, moments, own, center=game.center)
    moments = merge_moments(moments, own)
    if game.forget == 1 and isinstance(rows, DenseRows):
        rows = replace(rows, mean=own.mean)
    state, _ = game.update(TwoPartRows.of(rows) if in_parts else rows, state, empty=empty)
    state = placement.constrain_state(state)
    return state, kept_moments(moments, placement), probes, game.components(state)


step = quick_jit(play_batch, static_argnums=(0, 1, 6))
"""`play_batch`, compiled once for each shape."""


def _step_on_host(
    game: Remembered,
    rows: CSRRows | HostRows,
    state: RememberedState,
    moments: Moments,
    probes: ProbeSums | None,
) -> tuple[RememberedState, Moments, ProbeSums | None, jax.Array]:
    """Version of `step` for rows on the host."""
    counted: Any = rows
    if game.forget != 1:
        # It raises an error for sparse rows.
        counted, keep = game.fade(rows, moments.weight.dtype)
        moments, probes = fade_moments(moments, keep), fade_sums(probes, keep)
    own = batch_moments(counted)
    after = merge_moments(moments, own)
    if not np.isfinite(own.scatter).all():
        # The pass ends with an error, and NumPy has no eigenvectors of NaN.
        return state, after, probes, game.components(state)
    if probes is not None:
        probes = add_batch(probes, counted, moments, own, center=game.center)
    state, _ = game.update(replace(rows, mean=own.mean) if game.forget == 1 else rows, state)
    return state, after, probes, game.components(state)


def begin_in_host_memory(*arguments: Any) -> Stream:
    """Version of `begin` whose arrays are those of NumPy."""
    return in_host_memory(begin(*arguments))


def after_batch(
    stream: Stream,
    state: RememberedState,
    moments: Moments,
    count: int,
    components: Callable[[], Any],
    overlaps: jax.Array | None = None,
) -> Stream:
    """Return the stream after a batch, with a new snapshot if the number of rows has doubled."""
    rows, snapshots = stream.rows + count, stream.snapshots
    if rows >= max(2 * snapshots[1][0], 1):
        snapshots = (snapshots[1], (rows, components()))
    return Stream(state, moments, rows, snapshots, overlaps, stream.probes)
