"""Tasks of a worker: fold one partition, choose the frame, merge two carries.

Everything here is sent to workers by pickle and does not refer to the scheduler.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.dask.merge import merged, packed, unpacked
from eigengame.dask.partitions import Partitions, open_partition
from eigengame.solver.passes.passes import Step
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.finite import refuse_unless_finite
from eigengame.solver.rows.frame import Frame, frame_of
from eigengame.solver.rows.ragged import LEAST_ROWS, shared_size
from eigengame.sources import Source, SourceError


class EmptyPartition(Exception):
    """The partition that should choose the frame has no rows."""


@dataclass(frozen=True)
class PartitionFold:
    """The fold of a partition: its step, and how rows are read.

    Attributes
    ----------
    step : bytes
        Step, initial carry and game, pickled separately: JAX would convert float64 arrays to float32 if they were
        unpickled outside of `jax.enable_x64`.
    dtype : dtype
    size : int
        Rows of a batch.
    ragged : bool
        Whether the lengths of partitions are unknown: then batches of a short one have one of a few sizes.
    name : str
    width : int
        Features after preparation.
    sparse : bool
    steps : tuple of Step
        Preparation of the rows.
    options : dict
        Options of the source of a partition.
    raw : bool
        Whether rows are transferred as they are and converted on the device.
    """

    step: bytes
    dtype: np.dtype
    size: int
    ragged: bool
    name: str
    width: int
    sparse: bool
    steps: tuple[Any, ...]
    options: dict[str, Any]
    raw: bool = False

    @classmethod
    def of(
        cls, batches: Batches, partitions: Partitions, game: Remembered, step: Step, start: Any
    ) -> PartitionFold:
        """Return the fold of a pass with this step."""
        return cls(
            step=pickle.dumps((step, packed(start), game)),
            dtype=batches.dtype,
            size=batches.size,
            ragged=partitions.lengths is None,
            name=batches.source.name,
            width=batches.source.shape[1],
            sparse=batches.source.sparse,
            steps=partitions.steps,
            options=partitions.options or {},
            raw=batches.raw,
        )

    def open(self, data: Any, number: int) -> Source:
        """Return the source of a partition, checked."""
        source = open_partition(data, f"{self.name}, block {number}", self.steps, self.options)
        source = source.in_float64() if self.dtype == np.float64 else source
        if source.shape[1] != self.width:
            raise SourceError(
                f"{source.name} has {source.shape[1]} features, but {self.width} were expected: give blocks "
                "with the same columns."
            )
        if source.sparse != self.sparse:
            kinds = ("sparse", "dense") if source.sparse else ("dense", "sparse")
            raise SourceError(
                f"{source.name} is {kinds[0]}, but Dask takes it for {kinds[1]}: give the type of blocks by meta=, "
                "for example map_blocks(csr_array, meta=csr_array((0, 0)))."
            )
        return source


def fold_partition(
    fold: PartitionFold, data: Any, number: int, frame: Frame, weights: np.ndarray | None
) -> tuple[int, Any]:
    """Return the number of rows of a partition, and the packed carry after them."""
    with jax.enable_x64(fold.dtype == np.float64):
        step, start, game = pickle.loads(fold.step)
        if _is_empty(data):
            return 0, start
        source, size = fold.open(data, number), fold.size
        if fold.ragged and source.shape[0] is not None:
            size = shared_size(source.shape[0], LEAST_ROWS, size)
        batches = Batches(source, size, fold.dtype, weights, frame, raw=fold.raw)
        carry, rows = unpacked(game, start), 0
        for batch in batches():
            carry, rows = step(carry, batch.rows, batch.counted), rows + batch.read
        refuse_unless_finite(batches, first_nonfinite_array(carry))
        return rows, packed(carry)


def partition_frame(
    fold: PartitionFold, data: Any, center: bool, weights: np.ndarray | None
) -> Frame:
    """Return the frame of all rows, from the first rows of one partition with a weight above 0."""
    if _is_empty(data) or (weights is not None and not np.any(weights)):
        raise EmptyPartition
    return frame_of(fold.open(data, 0), fold.dtype, center=center, weights=weights)


def merge_pair(game: Remembered, dtype: np.dtype, one: Any, other: Any) -> Any:
    """Return the packed carry of two partitions together."""
    with jax.enable_x64(dtype == np.float64):
        return packed(merged(game, unpacked(game, one), unpacked(game, other)))


def first_nonfinite_array(carry: Any) -> np.ndarray:
    """Return the first array of a carry that is not finite, or a zero."""
    for leaf in jax.tree.leaves(carry):
        array = np.asarray(leaf)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return array
    return np.zeros(1)


def _is_empty(data: Any) -> bool:
    """Return whether a block has no rows."""
    return bool(data.shape[0] == 0)
