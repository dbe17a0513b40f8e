"""One pass of the remembered game over batches, in the space of a plan: how it begins, takes a batch, and ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from eigengame.solver.passes.passes import Passes, SourcePasses
from eigengame.solver.planning.plan import ON_HOST, Plan, Space
from eigengame.solver.streams.batch_step import begin, begin_in_host_memory, take
from eigengame.solver.streams.carried_overlaps import (
    begin_offloaded,
    begin_with_overlaps,
    end_offloaded,
    end_with_overlaps,
    take_offloaded,
    take_with_overlaps,
)
from eigengame.solver.streams.one_pass import figures
from eigengame.solver.streams.sampled_batches import begin_sampled, end_sampled, take_sampled
from eigengame.solver.streams.stream import Stream, in_host_memory

TASK = "remembered"
"""Name of the pass, for progress."""


class Mode(NamedTuple):
    """How a pass begins, takes a batch, and ends in one of the spaces."""

    begin: Callable[..., Stream]
    take: Callable[..., Stream]
    end: Callable[[Stream], Stream]


def _as_it_is(stream: Stream) -> Stream:
    return stream


MODES: dict[Space, Mode] = {
    "score": Mode(begin, take, _as_it_is),
    ON_HOST: Mode(begin_in_host_memory, take, _as_it_is),
    "gram": Mode(begin, take, _as_it_is),
    "sampled score": Mode(begin_sampled, take_sampled, end_sampled),
    "gram with overlaps": Mode(begin_with_overlaps, take_with_overlaps, end_with_overlaps),
    "gram on the host": Mode(begin_offloaded, take_offloaded, end_offloaded),
}
"""The pass in each space of a plan."""


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
