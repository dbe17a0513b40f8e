"""Passes over a source: each folds its batches into a carry, with progress callbacks and checkpoints.

Everything that reads data does it here: the remembered pass, products with M, the covariance, moments. So pacing
of the device, progress, checkpoints and resuming are in one place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np

from eigengame._system import interrupts
from eigengame.linalg.products import longest_row_sum
from eigengame.sharding.gather import any_distributed
from eigengame.sharding.hosts import require_equal
from eigengame.sharding.placement import Placement
from eigengame.solver.passes.checkpoint import CheckpointStore, Interrupted
from eigengame.solver.passes.events import Progress, Watcher
from eigengame.solver.rows.batches import Batches, computed_on_device
from eigengame.solver.rows.finite import refuse_unless_finite
from eigengame.solver.rows.frame import Frame
from eigengame.sources import Source, SourceError

Step = Callable[[Any, Any, int], Any]
"""From a carry, rows of the game and the number of rows that count to the next carry."""

Report = Callable[[Any], dict[str, float]]
"""From a carry to figures for progress callbacks."""


@dataclass
class PassRecord:
    """Passes made so far, and whether a callback has stopped the run; shared by all passes of one run."""

    made: int = 0
    stopped: bool = False


class Passes(ABC):
    """Passes over the rows of a source.

    Parameters
    ----------
    batches : Batches
    watchers : sequence of Watcher
    record : PassRecord, optional
        That of the run, if other passes of it were made before.
    """

    def __init__(
        self, batches: Batches, watchers: Sequence[Watcher] = (), record: PassRecord | None = None
    ) -> None:
        self.batches, self.watchers = batches, watchers
        self.record = PassRecord() if record is None else record

    @property
    def source(self) -> Source:
        """The source of the rows."""
        return self.batches.source

    @property
    def size(self) -> int:
        """Rows of a batch."""
        return self.batches.size

    @property
    def longest_sum(self) -> int:
        """Largest number of additions in a row of a float32 sum over the rows of a batch."""
        return self.size

    @property
    def placement(self) -> Placement:
        """Devices of the batches."""
        return self.batches.placement

    @property
    def frame(self) -> Frame:
        """Origin and unit of the rows."""
        return self.batches.frame

    @property
    def raw(self) -> bool:
        """Whether batches are raw rows (`RawRows`) on one device."""
        return self.batches.sends_raw

    @property
    def sparse_on_host(self) -> bool:
        """Whether batches are sparse rows that are multiplied on the host (`CSRRows`)."""
        return self.batches.sparse_on_host

    @property
    def stopped(self) -> bool:
        """Whether a callback has stopped the run."""
        return self.record.stopped

    @abstractmethod
    def fold(self, step: Step, start: Any, *, task: str, report: Report | None = None) -> Any:
        """Make one pass and return the carry: `step` applied to it and to each batch in turn."""

    @abstractmethod
    def in_float64(self, mean: np.ndarray | None) -> Self:
        """Return passes over the same rows in float64, about a mean (d,) if rows can be shifted.

        They belong to the same run. Their steps run under ``jax.enable_x64(True)``.
        """

    def unpadded(self, least: int = 0) -> Self:
        """Return passes whose last batch is not padded if NumPy reads it, to avoid a copy.

        Batches have at least `least` rows.
        """
        return self

    def unstored(self) -> Self:
        """Return passes that no checkpoint stores: a run that is resumed does not make them."""
        return self

    @abstractmethod
    def weighted(self, weights: np.ndarray) -> Self:
        """Return passes over the same rows with other weights (n,). They belong to the same run."""

    def first(self) -> Any:
        """Return the first batch."""
        return self.batches.first()

    def refuse_unless_finite(self, scatter: Any) -> None:
        """Raise ValueError if the scatter (d,) of the features shows that the data has NaN or infinity."""
        refuse_unless_finite(self.batches, scatter)

    def notify(self, at: Progress, carry: Any, report: Report | None) -> None:
        """Call the progress callbacks. Any of them may stop the run."""
        if not self.watchers:
            return
        if report is not None:
            at = replace(at, tell=lambda: report(carry))
        stop = [watcher.batch(at) for watcher in self.watchers]
        self.record.stopped = self.stopped or any(stop)


class SourcePasses(Passes):
    """Passes of this process over a source.

    Parameters
    ----------
    batches, watchers, record
        As in `Passes`.
    checkpoint : CheckpointStore, optional
        Stores the carry of each pass.
    """

    def __init__(
        self,
        batches: Batches,
        watchers: Sequence[Watcher] = (),
        record: PassRecord | None = None,
        checkpoint: CheckpointStore | None = None,
    ) -> None:
        super().__init__(batches, watchers, record)
        self.checkpoint = checkpoint

    @property
    def longest_sum(self) -> int:
        """Largest number of additions in a row of a float32 sum over the rows of a batch."""
        alone = self.placement.mesh is None and not self.source.sparse
        return longest_row_sum(self.size) if alone else self.size

    def in_float64(self, mean: np.ndarray | None) -> SourcePasses:
        """Return passes over the same rows in float64, about a mean (d,) if rows can be shifted."""
        return self._over(self.batches.in_float64(mean))

    def unpadded(self, least: int = 0) -> SourcePasses:
        """Return passes whose last batch is not padded if NumPy reads it, to avoid a copy."""
        size = max(self.batches.size, least)
        return self._over(replace(self.batches, padded=False, size=size))

    def unstored(self) -> SourcePasses:
        """Return passes that no checkpoint stores: a run that is resumed does not make them."""
        return SourcePasses(self.batches, self.watchers, self.record)

    def on_the_host(self, *, growing: bool) -> SourcePasses:
        """Return passes over the same rows whose dense batches are multiplied by NumPy (`HostRows`).

        With `growing`, batches begin small.
        """
        return self._over(replace(self.batches, host_rows=True, growing=growing))

    def weighted(self, weights: np.ndarray) -> SourcePasses:
        """Return passes over the same rows with other weights (n,)."""
        return self._over(replace(self.batches, weights=weights))

    def _over(self, batches: Batches) -> SourcePasses:
        return SourcePasses(batches, self.watchers, self.record, self.checkpoint)

    def fold(self, step: Step, start: Any, *, task: str, report: Report | None = None) -> Any:
        """Make one pass and return the carry.

        A pass that a checkpoint holds is read from it, and continued if it was interrupted. Steps are pure
        functions, so the result is the same to the last bit.
        """
        if self.record.made and not self.source.again:
            raise ValueError(
                f"{self.source.name} can be read once, but a second pass is needed: give passes=1, or data "
                "that can be read again."
            )
        number = self.record.made
        self.record.made += 1
        carry, row, ended = start, 0, False
        if self.checkpoint is not None:
            carry, row, ended = self.checkpoint.read(number, start, task)
            require_equal("rows to continue from", -1 if ended else row)
        if ended:
            return carry
        total, begin, before, complete = self.source.shape[0], row, None, True
        early = computed_on_device(self.source)
        try:
            for batch in self.batches(row):
                after = step(carry, batch.rows, batch.counted)
                # At most two updates at a time, and one if the next batch has been started already: at most two
                # batches are read while a third is computed (`DEVICE_BUFFERS`).
                _wait_for(carry if early else before)
                before, carry, row = carry, after, row + batch.read
                self.notify(Progress(task, number + 1, row, total, begin), carry, report)
                # Only a pass with figures can end early: the carries of others mean nothing before the end.
                if self.stopped and report is not None:
                    complete = False
                    break
                if self.checkpoint is not None and self.checkpoint.due(carry):
                    self.checkpoint.write(number, carry, row)
                interrupts.check()
            if row == 0:
                raise SourceError(f"{self.source.name} has no rows: give at least one row.")
            ended = complete  # a pass that a callback ended early is continued by the next run
            if self.checkpoint is not None:
                self.checkpoint.write(number, carry, row, ended=ended)
            self.notify(Progress(task, number + 1, row, row, begin, ended=True), carry, report)
        except KeyboardInterrupt:
            # A carry that is shared by processes can only be gathered by all of them.
            if self.checkpoint is None or any_distributed(carry):
                raise
            self.checkpoint.write(number, carry, row, ended=ended)
            raise Interrupted(self.checkpoint.folder, number + 1, row) from None
        return carry


def _wait_for(carry: Any) -> None:
    """Wait until the first array of a carry is computed."""
    for leaf in jax.tree.leaves(carry):
        if isinstance(leaf, jax.Array):
            leaf.block_until_ready()
            return
