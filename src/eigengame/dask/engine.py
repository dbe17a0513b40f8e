"""Fits on a Dask cluster.

Every pass of a fit is one task graph: a worker folds each partition, carries are merged in pairs, neighbour by
neighbour, and the last two are merged here. So the result depends on the data and its partitions only, not on
scheduling. If a worker is lost, Dask computes its partitions again. Rows are never moved for a fit:

* to each partition: the carry to start from, $K(d + 1) + 2d$ numbers; for a further pass the directions to
multiply by M
  and zeros to add to, $2K(d + 1)$; and, if the data is far from zero, its origin (d,);
* up the tree: for the remembered pass $K(d + 1) + 2d$ numbers and four counts (see `merge`); for a further pass
  $K(d + 1)$, products with M and sums of scores; for the covariance route $d(d + 2)$.

Dask is imported when it is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eigengame._system import interrupts
from eigengame._system.extras import install_command
from eigengame.dask.partitions import split_up
from eigengame.dask.passes import DaskPasses
from eigengame.preparation import PreparedSource
from eigengame.solver.fit import batches_of
from eigengame.solver.passes.events import Watcher
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.plan import Plan
from eigengame.solver.planning.problem import Problem
from eigengame.solver.rows.frame import Frame
from eigengame.sources import Source
from eigengame.sources.dask_blocks import DaskSource

NAME = "dask"
"""Value of `engine` for the default scheduler."""


@dataclass(frozen=True)
class DaskEngine:
    """A Dask scheduler: a distributed client, or the default scheduler if `client` is None.

    It is the executor of a fit: see `eigengame.solver.fit.Executor`.
    """

    client: Any = None

    def compute(self, nodes: Sequence[Any]) -> Sequence[Any]:
        """Return the results of delayed nodes, in order."""
        import dask

        # Players are part of the graph, so that the scheduler still has them when a worker is lost.
        quiet = {"distributed.admin.large-graph-warning-threshold": "1GiB"}
        with dask.config.set(quiet if "distributed" in sys.modules else {}), interrupts.immediate():
            if self.client is None:
                return dask.compute(*nodes)
            return self.client.gather(self.client.compute(nodes))

    def plan(self, problem: Problem, k: int, frame: Frame | None = None) -> Plan:
        """Decide how to fit k components, and refuse options that a cluster does not support."""
        _refuse_unsupported(problem)
        lengths = split_up(problem.source).lengths
        longest = None if lengths is None else max(lengths, default=1)
        return make_plan(problem, k, rows=longest, frame=frame, remote=True)

    def passes(self, problem: Problem, plan: Plan, watchers: Sequence[Watcher]) -> DaskPasses:
        """Return passes over the partitions of the data."""
        return DaskPasses(
            self.compute,
            batches_of(problem, plan),
            split_up(problem.source),
            plan.game(),
            watchers,
            frame=plan.frame,
        )


def _refuse_unsupported(problem: Problem) -> None:
    """Raise ValueError for options that depend on the order of rows, or on one device."""
    if problem.algorithm not in ("remembered", "auto", "exact"):
        raise ValueError(
            f"algorithm={problem.algorithm!r} processes batches one after another, but Dask processes partitions "
            "in parallel: use 'remembered', 'auto' or 'exact'."
        )
    if problem.options.forget != 1:
        raise ValueError(
            f"forget={problem.options.forget} depends on the order of rows, but Dask processes partitions in "
            "parallel: use forget=1, or data that is not a Dask collection without engine."
        )
    if problem.mesh is not None:
        raise ValueError(
            f"mesh={problem.mesh!r}: on Dask each worker uses its own device; leave mesh out."
        )


def engine_for(source: Source, engine: Any, checkpoint: Any = None) -> DaskEngine | None:
    """Return the engine of a fit: the given one, Dask for Dask collections, else None."""
    lazy = isinstance(source.source if isinstance(source, PreparedSource) else source, DaskSource)
    if engine is None and not lazy:
        return None
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint={checkpoint!r} is not supported on Dask, which computes lost partitions again: leave it "
            "out."
        )
    try:
        import dask  # noqa: F401
    except ImportError:
        raise ImportError(f"engine={engine!r} needs Dask: {install_command('dask')}") from None
    if engine is None or engine == NAME:
        return DaskEngine()
    if not all(hasattr(engine, name) for name in ("compute", "gather", "status")):
        raise ValueError(f"engine={engine!r}: give a distributed.Client, or {NAME!r}.")
    if engine.status != "running":
        raise ValueError(
            f"engine={engine!r} is {engine.status}: give a client that is connected and not asynchronous."
        )
    return DaskEngine(engine)
