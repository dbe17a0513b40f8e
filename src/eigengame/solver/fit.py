"""One call of `fit`: plan, passes, solution; and how many components a share of the variance needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from eigengame.sharding.hosts import require_equal
from eigengame.sharding.placement import Placement
from eigengame.solver.batches import Batches
from eigengame.solver.checkpoint import CheckpointStore
from eigengame.solver.events import Watcher, call
from eigengame.solver.frame import Frame
from eigengame.solver.passes import Passes, SourcePasses
from eigengame.solver.plan import Plan, Problem, make_plan
from eigengame.solver.result import Result
from eigengame.solver.row_counts import TooFewRows
from eigengame.solver.solve import solve

NULL_LEVEL = 4 * float(np.finfo(np.float64).eps)
"""Share of the largest variance up to which a component counts as null in a fit of all components in float64."""

FIRST_COMPONENTS = 16
"""Number of components of the first fit for a share of the variance; each further fit has twice as many."""


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
) -> Result:
    """Fit k components; see `result_of` for `null_level`."""
    plan = executor.plan(problem, k)
    call(watchers, "plan", plan)
    return solve(plan, executor.passes(problem, plan, watchers), null_level)


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

    The number is doubled until the share is reached, then the fit is repeated with as many as needed. Passes of all
    fits are counted.
    """
    passes = 0

    def fit(k: int) -> Result:
        nonlocal passes
        result = _fit_at_most(problem, k, executor, watchers)
        passes += result.outcome.passes
        return replace(result, outcome=replace(result.outcome, passes=passes))

    k = min(FIRST_COMPONENTS, most)
    result = fit(k)
    while k < most and len(result.components) == k:
        if result.explained_variance_ratio.sum() >= share:
            break
        k = min(2 * k, most)
        result = fit(k)
    found = len(result.components)
    needed = int(np.searchsorted(np.cumsum(result.explained_variance_ratio), share)) + 1
    return fit(needed) if needed < found else result


def _fit_at_most(
    problem: Problem,
    k: int,
    executor: Executor,
    watchers: Sequence[Watcher],
    null_level: float = 0.0,
) -> Result:
    """Fit k components, or as many as there are rows; both fits are counted as passes."""
    try:
        return fit_components(problem, k, executor, watchers, null_level=null_level)
    except TooFewRows as error:
        most, passes = error.most, error.passes
    result = fit_components(problem, most, executor, watchers, null_level=null_level)
    total = passes + result.outcome.passes
    return replace(result, outcome=replace(result.outcome, passes=total))
