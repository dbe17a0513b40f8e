"""One more batch of a stream: its rows are played once, by the game that has seen the rows before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver.fit import batches_of
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.problem import Problem
from eigengame.solver.results.half_precision import with_rounding
from eigengame.solver.results.result import Result, result_of, stream_frame, stream_in
from eigengame.solver.rows.row_counts import refuse_unless_counted, warn_if_rounded_away
from eigengame.solver.solve import found_in_stream
from eigengame.solver.streams import stream as streams
from eigengame.solver.streams.batch_step import begin
from eigengame.solver.streams.streaming import one_pass

RAGGED = 1024
"""Rows of a batch if their number is not known."""


def continue_stream(problem: Problem, k: int, before: Result | None) -> Result:
    """Return the result after the rows of a problem.

    Parameters
    ----------
    problem : Problem
        Its options are those of the stream.
    k : int
        Number of components.
    before : Result or None
        With the stream so far; None if these are its first rows.
    """
    # Each row is played once, and nothing is judged before the stream ends.
    options = replace(problem.options, passes=1, tol=None, automatic=False)
    source, weights, (n, d) = problem.source, problem.weights, problem.source.shape
    # Always with weights, so that batches of all lengths share their compilations.
    weights = np.ones(n) if weights is None and n else weights
    fixed = replace(options, extra=options.players(k, d) - k)
    problem = replace(problem, options=fixed, weights=weights)
    plan = make_plan(
        problem,
        k,
        # Not the rows of this batch: each number would have a shape, and a compilation, of its own.
        rows=None,
        ragged=n or RAGGED,
        placement=ONE_DEVICE if problem.mesh is None else None,
        frame=None if before is None else stream_frame(before),
    )
    frame, game = plan.frame, plan.game()
    assert frame is not None
    if before is None:
        stream = begin(game, k, d, options.dtype, options.seed, plan.placement, plan.probes)
    else:
        stream = streams.placed(game, stream_in(before, frame), plan.placement)
    passes = SourcePasses(replace(batches_of(problem, plan), ragged=True))
    stream = one_pass(plan, passes, stream)
    passes.refuse_unless_finite(stream.moments.scatter)
    total = stream.moments.weight
    refuse_unless_counted(source.name, stream.rows, total)
    if weights is not None:
        warn_if_rounded_away(source.name, float(weights.sum()), total, options.dtype)
    stream = streams.gathered(stream, d, plan.placement)
    return with_rounding(result_of(found_in_stream(stream, options), options, frame), source)
