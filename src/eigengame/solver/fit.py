"""One call of `fit`: plan, passes, solution; and how many components a share of the variance needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from eigengame.sharding.hosts import require_equal
from eigengame.sharding.placement import Placement
from eigengame.solver.passes.checkpoint import CheckpointStore
from eigengame.solver.passes.events import Watcher, call
from eigengame.solver.passes.passes import Passes, SourcePasses
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.plan import Plan
from eigengame.solver.planning.problem import Problem
from eigengame.solver.planning.routes import EXACT_ROUTES
from eigengame.solver.results.result import Result
from eigengame.solver.results.share import FIRST_COMPONENTS, estimated_count, larger_count
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.frame import Frame
from eigengame.solver.rows.row_counts import TooFewRows
from eigengame.solver.solve import solve

NULL_LEVEL = 4 * float(np.finfo(np.float64).eps)
"""Share of the largest variance up to which a component counts as null in a fit of all components in float64."""

MANY_COMPONENTS = 256
"""Number of components for which the route of a fit for a share of the variance is chosen."""


class Executor(Protocol):
    """Where a fit runs: on the devices of this process, or on a cluster."""

    def plan(self, problem: Problem, k: int, frame: Frame | None = None) -> Plan:
        """Decide how to fit k components; `frame` is that of the rows, if it is already decided."""
        ...

    def passes(self, problem: Problem, plan: Plan, watchers: Sequence[Watcher]) -> Passes:
        """Return passes over the data."""
        ...


@dataclass(frozen=True)
class LocalExecutor:
    """Fits on the devices of this process, or of several processes with a common mesh.

    Attributes
    ----------
    checkpoint : CheckpointStore or None
    placement : Placement or None
        Devices; by default those of the mesh of the problem.
    """

    checkpoint: CheckpointStore | None = None
    placement: Placement | None = None

    def plan(self, problem: Problem, k: int, frame: Frame | None = None) -> Plan:
        """Decide how to fit k components."""
        rows = problem.source.shape[0]
        if self.checkpoint is not None and self.checkpoint.of_earlier_version:
            problem = replace(problem, options=replace(problem.options, probes=0))
        plan = make_plan(problem, k, rows=rows, placement=self.placement, frame=frame)
        if plan.placement.processes > 1:
            require_equal("random_state", plan.options.seed % 2**31, "the same number")
        return plan

    def passes(self, problem: Problem, plan: Plan, watchers: Sequence[Watcher]) -> SourcePasses:
        """Return passes over the data."""
        # A fit for a share of the variance takes several fits, each with passes of its own.
        store = None if self.checkpoint is None else self.checkpoint.part(f"k{plan.components}")
        return SourcePasses(batches_of(problem, plan), watchers, checkpoint=store)


def batches_of(problem: Problem, plan: Plan) -> Batches:
    """Return the batches of a problem as planned."""
    return Batches(
        problem.source,
        plan.batch,
        plan.options.dtype,
        problem.weights,
        plan.frame or Frame(),
        placement=plan.placement,
    )


def fit_components(
    problem: Problem,
    k: int,
    executor: Executor,
    watchers: Sequence[Watcher] = (),
    *,
    null_level: float = 0.0,
    share: float | None = None,
) -> Result:
    """Fit k components; see `result_of` for `null_level`, and `solve` for `share`."""
    plan = executor.plan(problem, k)
    call(watchers, "plan", plan)
    return solve(plan, executor.passes(problem, plan, watchers), null_level, share)


def fit_all(
    problem: Problem, most: int, executor: Executor, watchers: Sequence[Watcher] = ()
) -> Result:
    """Fit `most` components, or fewer if the source leaves out rows while it is read."""
    # In float64 the stream resolves variances down to about this share of the largest.
    level = NULL_LEVEL if np.dtype(problem.options.dtype) == np.float64 else 0.0
    return _fit_at_most(problem, most, executor, watchers, level)


def fit_share(
    problem: Problem, share: float, most: int, executor: Executor, watchers: Sequence[Watcher] = ()
) -> Result:
    """Fit as many components as explain a share of the variance, at most `most`.

    An exact route finds the number from all eigenvalues. Otherwise the number is estimated from some rows, a little
    too large, and components beyond the share are left out. If the share is not reached, the fit is repeated with
    more components. Passes of all fits are counted.
    """
    many = min(MANY_COMPONENTS, most)
    if executor.plan(problem, many).route in EXACT_ROUTES:
        return fit_components(problem, many, executor, watchers, share=share)
    k, passes = min(FIRST_COMPONENTS, most), 0
    if isinstance(executor, LocalExecutor):
        k = estimated_count(problem.source, share, most, center=problem.options.center)
    while True:
        result = _fit_at_most(problem, k, executor, watchers, share=share)
        passes += result.outcome.passes
        found = len(result.components)
        if found < k or k == most or result.explained_variance_ratio.sum() >= share:
            return replace(result, outcome=replace(result.outcome, passes=passes))
        k = larger_count(result, share, most)


def _fit_at_most(
    problem: Problem,
    k: int,
    executor: Executor,
    watchers: Sequence[Watcher],
    null_level: float = 0.0,
    share: float | None = None,
) -> Result:
    """Fit k components, or as many as there are rows; both fits are counted as passes."""
    options: dict[str, Any] = {"null_level": null_level, "share": share}
    try:
        return fit_components(problem, k, executor, watchers, **options)
    except TooFewRows as error:
        most, passes = error.most, error.passes
    result = fit_components(problem, most, executor, watchers, **options)
    total = passes + result.outcome.passes
    return replace(result, outcome=replace(result.outcome, passes=total))
