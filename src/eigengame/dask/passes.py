"""Passes over the partitions of a source, each a tree of Dask tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eigengame.algorithms import Remembered
from eigengame.dask.merge import merged, unpacked
from eigengame.dask.partitions import Partitions
from eigengame.dask.worker import (
    EmptyPartition,
    PartitionFold,
    first_nonfinite_array,
    fold_partition,
    merge_pair,
    partition_frame,
)
from eigengame.solver.passes.events import Progress, Watcher
from eigengame.solver.passes.passes import Passes, PassRecord, Report, Step
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.frame import Frame
from eigengame.sources import SourceError


@dataclass
class ChosenFrame:
    """Frame of the rows, once it is chosen; shared by the passes of a run."""

    frame: Frame | None = None


class DaskPasses(Passes):
    """Passes over partitions, each one a tree of tasks.

    Callbacks are called after each pass; the dashboard of Dask shows the progress within one.

    Parameters
    ----------
    compute : callable
        Computes delayed nodes.
    batches : Batches
        How rows of a partition are read; short partitions are padded, so all share one compilation.
    partitions : Partitions
    game : Remembered
        Merges two states.
    watchers, record
        As in `Passes`.
    frame : Frame, optional
        Origin and unit of the rows. By default the first pass chooses it, in the first partition with rows.
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Any]], Sequence[Any]],
        batches: Batches,
        partitions: Partitions,
        game: Remembered,
        watchers: Sequence[Watcher] = (),
        record: PassRecord | None = None,
        frame: Frame | ChosenFrame | None = None,
    ) -> None:
        super().__init__(batches, watchers, record)
        self.compute, self.partitions, self.game = compute, partitions, game
        self._chosen = frame if isinstance(frame, ChosenFrame) else ChosenFrame(frame)

    @property
    def frame(self) -> Frame:
        """Origin and unit of the rows."""
        return self._chosen.frame or Frame()

    def in_float64(self, mean: np.ndarray | None) -> DaskPasses:
        """Return passes over the same rows in float64, about a mean (d,) if rows can be shifted."""
        if self._chosen.frame is None:  # these passes choose it
            return self._over(self.batches.in_float64(None), self._chosen)
        batches = replace(self.batches, frame=self._chosen.frame).in_float64(mean)
        return self._over(batches, ChosenFrame(batches.frame))

    def weighted(self, weights: np.ndarray) -> DaskPasses:
        """Return passes over the same rows with other weights (n,)."""
        return self._over(replace(self.batches, weights=weights), self._chosen)

    def _over(self, batches: Batches, chosen: ChosenFrame) -> DaskPasses:
        return DaskPasses(
            self.compute,
            batches,
            self.partitions,
            self.game,
            self.watchers,
            self.record,
            chosen,
        )

    def fold(self, step: Step, start: Any, *, task: str, report: Report | None = None) -> Any:
        """Make one pass: fold each partition from `start`, which is empty, and merge the carries."""
        fold = PartitionFold.of(self.batches, self.partitions, self.game, step, start)
        carries = self._carries(fold)
        rows, carry = carries[0] if len(carries) == 1 else merged(self.game, *carries)
        if not rows:
            raise self._no_rows()
        if not np.isfinite(first_nonfinite_array(carry)).all():  # every partition was finite
            largest = np.finfo(self.batches.dtype).max
            raise ValueError(
                f"{self.source.name} has numbers whose squares add up to more than {largest:.2g}: divide the "
                "data by its largest number."
            )
        self.record.made += 1
        self.notify(Progress(task, self.record.made, rows, rows, ended=True), carry, report)
        return carry

    def _carries(self, fold: PartitionFold) -> list[Any]:
        """Return the last one or two carries of the tree, each with its number of rows."""
        if self._chosen.frame is not None:
            return self._computed(fold, self._chosen.frame)[1]
        for number, rows in enumerate(self.partitions.lengths or [1] * len(self.partitions.data)):
            try:
                if rows:
                    self._chosen.frame, carries = self._computed(fold, number)
                    return carries
            except EmptyPartition:
                continue
        raise self._no_rows()

    def _no_rows(self) -> SourceError:
        return SourceError(f"{self.source.name} has no rows: give at least one row.")

    def _computed(self, fold: PartitionFold, frame: Frame | int) -> tuple[Frame, list[Any]]:
        """Compute the tree; `frame` is a frame, or the number of the partition that chooses it."""
        import dask

        data = self.partitions.data
        weights = self.partitions.weights(self.batches.weights)
        shared = dask.delayed(fold, traverse=False)
        if isinstance(frame, int):
            center, own = self.game.center, weights[frame]
            chosen = _delayed(partition_frame)(shared, data[frame], center, own)
        else:
            chosen = dask.delayed(frame, traverse=False)
        carries = [
            _delayed(fold_partition)(shared, one, number, chosen, weights[number])
            for number, one in enumerate(data)
        ]
        join = _delayed(partial(merge_pair, self.game, self.batches.dtype))
        found, *packed = self.compute([chosen, *tree(join, carries)])
        return found, [unpacked(self.game, one) for one in packed]


def tree(join: Callable[[Any, Any], Any], leaves: Sequence[Any]) -> list[Any]:
    """Return at most two nodes: neighbours joined in pairs, repeatedly."""
    nodes = list(leaves)
    while len(nodes) > 2:
        pairs = [join(*nodes[i : i + 2]) for i in range(0, len(nodes) - 1, 2)]
        nodes = pairs + nodes[len(pairs) * 2 :]
    return nodes


def _delayed(function: Callable[..., Any]) -> Any:
    import dask

    return dask.delayed(function, pure=False)
