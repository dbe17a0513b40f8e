"""One call of `fit`: plan, passes, solution; and how many components a share of the variance needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from eigengame.sharding.hosts import require_equal
from eigengame.solver.batches import Batches
from eigengame.solver.checkpoint import CheckpointStore
from eigengame.solver.events import Watcher, call
from eigengame.solver.frame import Frame
from eigengame.solver.passes import Passes, SourcePasses
from eigengame.solver.plan import Plan, Problem, make_plan
from eigengame.solver.result import Result
from eigengame.solver.row_counts import TooFewRows
from eigengame.solver.solve import solve

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
    """

    checkpoint: CheckpointStore | None = None

    def plan(self, problem: Problem, k: int, frame: Frame | None = None) -> Plan:
        """Decide how to fit k components."""
        plan = make_plan(problem, k, rows=problem.source.shape[0], frame=frame)
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
    problem: Problem, k: int, executor: Executor, watchers: Sequence[Watcher] = ()
) -> Result:
    """Fit k components."""
    plan = executor.plan(problem, k)
    call(watchers, "plan", plan)
    return solve(plan, executor.passes(problem, plan, watchers))


def fit_all(
    problem: Problem, most: int, executor: Executor, watchers: Sequence[Watcher] = ()
) -> Result:
    """Fit `most` components, or fewer if rows that the source leaves out do not allow so many."""
    try:
        return fit_components(problem, most, executor, watchers)
    except TooFewRows as error:
        return fit_components(problem, error.most, executor, watchers)


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
        result = fit_components(problem, k, executor, watchers)
        passes += result.outcome.passes
        return replace(result, outcome=replace(result.outcome, passes=passes))

    k = min(FIRST_COMPONENTS, most)
    result = fit(k)
    while k < most and result.explained_variance_ratio.sum() < share:
        k = min(2 * k, most)
        result = fit(k)
    needed = int(np.searchsorted(np.cumsum(result.explained_variance_ratio), share)) + 1
    return fit(needed) if needed < k else result
