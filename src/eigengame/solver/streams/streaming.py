"""One pass of the remembered game over batches, in any of its spaces.

In score space and in Gram space each update measures the inner products of the players. Rows so wide that kernels
apply are played in Gram space with these products carried along (`Stream.overlaps`), and with players on the
device or in host memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.in_gram_space import REMEASURED, current_overlaps
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.csr_rows import CSRRows
from eigengame.game.host_rows import HostRows
from eigengame.game.rows import DenseRows
from eigengame.game.two_part_rows import TwoPartRows
from eigengame.linalg import offload
from eigengame.linalg.offload import ON_HOST as BLOCKS_ON_HOST
from eigengame.linalg.orthonormal import reorthonormalise, whiten
from eigengame.linalg.products import full_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.linalg.random_directions import random_orthonormal
from eigengame.linalg.wide import overlaps_of
from eigengame.sharding.gather import prefetch
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.passes.host_arrays import on_device, on_host
from eigengame.solver.passes.passes import Passes, SourcePasses
from eigengame.solver.planning.plan import ON_HOST, Plan, Space
from eigengame.solver.rows.moments import (
    Moments,
    add_moments,
    batch_moments,
    fade_moments,
    kept_moments,
    merge_moments,
    no_moments,
)
from eigengame.solver.streams.one_pass import figures
from eigengame.solver.streams.probe_products import begin_products
from eigengame.solver.streams.probe_sums import (
    ProbeSums,
    add_batch,
    fade_sums,
    no_sums,
    no_sums_on_device,
    rounded_draws,
)
from eigengame.solver.streams.probes_in_span import ProbesInSpan, fits, with_probes
from eigengame.solver.streams.sampled_start import begun, players_at_sample, sampled_places
from eigengame.solver.streams.stream import Snapshot, Stream, in_host_memory

TASK = "remembered"
"""Name of the pass, for progress."""


def stream_pass(plan: Plan, passes: Passes) -> Stream:
    """Play the remembered game once over all batches, from random players."""
    mode, game, options = MODES[plan.space], plan.game(), plan.options
    passes = _passes_of(plan, passes)
    size = plan.components, passes.source.shape[1]
    begun = mode.begin(game, *size, options.dtype, options.seed, passes.placement, plan.probes)
    step = partial(mode.take, game, placement=passes.placement)
    return mode.end(passes.fold(step, begun, task=TASK, report=figures))


def one_pass(plan: Plan, passes: Passes, stream: Stream) -> Stream:
    """Continue a stream with all batches of one pass, in score space or in Gram space."""
    passes = _passes_of(plan, passes)
    step = partial(take, plan.game(), placement=passes.placement)
    start = in_host_memory(stream) if plan.space == ON_HOST else stream
    found: Stream = passes.fold(step, start, task=TASK, report=figures)
    return found


def _passes_of(plan: Plan, passes: Passes) -> Passes:
    """Return passes with the rows that the space of a plan takes."""
    if plan.space != ON_HOST:
        return passes
    assert isinstance(passes, SourcePasses)  # a cluster has devices of its own
    return passes.on_the_host(growing=plan.growing)


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
        after = _step(game, placement, rows, *now)
    state, moments, probes, components = after
    return _after(stream._replace(probes=probes), state, moments, count, lambda: components)


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


_step = quick_jit(play_batch, static_argnums=(0, 1, 6))
"""`play_batch`, compiled once for each shape."""


def _step_on_host(
    game: Remembered,
    rows: CSRRows | HostRows,
    state: RememberedState,
    moments: Moments,
    probes: ProbeSums | None,
) -> tuple[RememberedState, Moments, ProbeSums | None, jax.Array]:
    """Version of `_step` for rows on the host."""
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


def _begin_in_host_memory(*arguments: Any) -> Stream:
    """Version of `begin` whose arrays are those of NumPy."""
    return in_host_memory(begin(*arguments))


def _after(
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


# ---------------------------------------------------------------- long batches on a GPU


def _begin_sampled(
    game: Remembered, k: int, d: int, dtype: Any, seed: int, placement: Placement, probes: int = 0
) -> Stream:
    """Return a game without rows, its players drawn on the device."""
    draws = rounded_draws(seed, probes, d).astype(dtype) if probes else None
    state, moments, sums = begun(game, k, d, np.uint32(seed % 2**32), draws)
    start = (0, np.zeros((k, 0), dtype))
    return Stream(state, moments, 0, (start, start), probes=sums)


def _take_sampled(
    game: Remembered, stream: Stream, rows: DenseRows, count: int, placement: Placement = ONE_DEVICE
) -> Stream:
    """Version of `take` for long batches: players begin at a sample of the first one."""
    if not count:
        return stream  # its players are not orthonormal before the first rows
    now = stream.state, stream.moments, stream.probes
    game, m = replace(game, first_rounds=1), rows.values.shape[0]
    if not stream.rows:
        places = sampled_places(m, len(stream.state.memory.players))
        after = _first_step(game, placement, count == m, rows, *now, places)
    else:
        after = _step(game, placement, rows, *now, True)
    state, moments, probes, components = after
    return _after(stream._replace(probes=probes), state, moments, count, lambda: components)


@partial(quick_jit, static_argnums=(0, 1, 2))
def _first_step(
    game: Remembered,
    placement: Placement,
    full: bool,
    rows: DenseRows,
    state: RememberedState,
    moments: Moments,
    probes: ProbeSums | None,
    places: jax.Array,
) -> tuple[RememberedState, Moments, ProbeSums | None, jax.Array]:
    """Return what `play_batch` does after the first batch with rows, by players that begin at a sample of it.

    `full` is whether all rows have a weight above 0.
    """
    players = players_at_sample(game.center, full, rows, state, places)
    # A step that is known leaves out a branch, for which the host would wait.
    begun = state._replace(
        memory=state.memory._replace(players=players), step=jnp.zeros_like(state.step)
    )
    after, own, sums, components = play_batch(
        game, placement, rows, begun, moments, probes, True, True
    )
    return after._replace(step=state.step + 1), own, sums, components


def _end_sampled(stream: Stream) -> Stream:
    """Return the stream, its arrays on their way to the host; those of the probes are measured on the device."""
    begin_products(stream)
    probes = stream.probes
    prefetch((stream.state, stream.moments, None if probes is None else probes[2:]))
    return stream


# ---------------------------------------------------------------- Gram space with overlaps


def _begin_with_overlaps(
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
    """Version of `take` in Gram space, with overlaps carried along."""
    state, moments, overlaps, probes = step_with_overlaps(
        game, rows, stream.state, stream.moments, stream.overlaps, stream.probes
    )
    stream = stream._replace(probes=probes)
    return _after(stream, state, moments, count, lambda: game.components(state), overlaps)


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


def _begin_on_host(
    game: Remembered, k: int, d: int, dtype: Any, seed: int, placement: Placement, probes: int = 0
) -> Stream:
    """Return a game without rows, its players in host memory; there are no probes."""
    players = random_orthonormal(game.players_for(k, d), d, dtype, seed)
    state = game.empty_state(players, k)
    return _without_rows(state, k, d, dtype, game.overlaps(state, BLOCKS_ON_HOST))


def _take_on_host(
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
    return _after(stream, state, moments, count, lambda: np.array(game.components(state)), overlaps)


def _end_with_overlaps(stream: Stream, orthonormalise: Callable[[Any], Any]) -> Stream:
    """Return the stream with orthonormal players, and without overlaps.

    Inner products of rows lose digits if rows are much alike, and players are only as orthonormal as these.
    """
    memory = stream.state.memory
    memory = memory._replace(players=orthonormalise(memory.players))
    return stream._replace(state=stream.state._replace(memory=memory), overlaps=None)


_reorthonormalise = quick_jit(reorthonormalise)
_overlaps = quick_jit(overlaps_of)


class Mode(NamedTuple):
    """How a pass begins, takes a batch, and ends in one of the spaces."""

    begin: Callable[..., Stream]
    take: Callable[..., Stream]
    end: Callable[[Stream], Stream]


MODES: dict[Space, Mode] = {
    "score": Mode(begin, take, lambda stream: stream),
    ON_HOST: Mode(_begin_in_host_memory, take, lambda stream: stream),
    "gram": Mode(begin, take, lambda stream: stream),
    "sampled score": Mode(_begin_sampled, _take_sampled, _end_sampled),
    "gram with overlaps": Mode(
        _begin_with_overlaps,
        take_with_overlaps,
        partial(_end_with_overlaps, orthonormalise=_reorthonormalise),
    ),
    "gram on the host": Mode(
        _begin_on_host,
        _take_on_host,
        partial(_end_with_overlaps, orthonormalise=offload.reorthonormalise),
    ),
}
"""The pass in each space of a plan."""
