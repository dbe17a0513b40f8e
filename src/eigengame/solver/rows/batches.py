"""Batches of a source, read ahead on a thread: rows of one shape on the device, or rows on the host.

On a device the last batch is padded with rows of weight 0. Integers and sparse entries are transferred as they are
and converted there. Reading continues while the device computes, with a bounded number of batches in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from eigengame._system import interrupts
from eigengame._system.aligned import AlignedCopies
from eigengame._system.read_ahead import one_ahead, read_ahead
from eigengame._system.reused_memory import ReusedMemory
from eigengame.game.host_rows import HostRows, converted
from eigengame.game.rows import DenseRows
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.rows.device_rows import rows_on_device
from eigengame.solver.rows.frame import Frame
from eigengame.solver.rows.ragged import LEAST_ENTRIES, shared_size
from eigengame.solver.rows.raw_rows import RawRows
from eigengame.solver.rows.sparse_batches import csr_on_host, csr_rows, sparse_rows
from eigengame.sources import DEVICE_BUFFERS, Block, RandomAccess, Source

AHEAD = 2
"""Batches that are read ahead."""

WIDENED_BYTES = 2**29
"""Largest batch in float64 of an array on a device: little beside the memory of any of them."""

SENT = {("f", 2), ("f", 4), ("f", 8), ("u", 1), ("i", 1), ("u", 2), ("i", 2), ("u", 4), ("i", 4)}
"""Kinds and sizes of numbers that are transferred as they are and converted on the device."""


FIRST_ROWS = 2**12
"""Rows of the first of growing batches."""


class Batch(NamedTuple):
    """Rows of the game, the number of rows that were read, and the number of those with a weight above 0."""

    rows: Any
    read: int
    counted: int


@dataclass(frozen=True)
class Batches:
    """Batches of a source, as rows of the game.

    Parameters
    ----------
    source : Source
    size : int
        Rows of a batch.
    dtype : dtype
        Precision of the updates.
    weights : array of shape (n,), optional
        Sample weights.
    frame : Frame
        Origin and unit of the rows. Sparse rows have no origin.
    ahead : int
        Batches to read ahead. Arrays in the memory of a CPU are not read ahead.
    placement : Placement
        Devices of the batches. A mesh may need further padding.
    raw : bool
        Whether dense rows of the host are transferred as they are and converted to float64 on the device
        (`RawRows`). Needs ``dtype=float64``.
    host_rows : bool
        Whether dense rows stay on the host, to be multiplied by NumPy (`HostRows`). They are not padded.
    growing : bool
        Whether batches begin small, and have at most as many rows as there are before them.
    padded : bool
        Whether the last batch is padded: compiled functions take batches of one shape.
    ragged : bool
        Whether other sources with other numbers of rows follow. Sparse batches then have space for one of a few
        numbers of entries.
    copies : AlignedCopies
        Memory of batches that JAX would have to copy.
    memory, scores_memory : ReusedMemory
        Memory of batches that NumPy has to convert, and of their scores.
    """

    source: Source
    size: int
    dtype: Any
    weights: np.ndarray | None = None
    frame: Frame = Frame()  # noqa: RUF009 - immutable
    ahead: int = AHEAD
    placement: Placement = ONE_DEVICE
    raw: bool = False
    host_rows: bool = False
    growing: bool = False
    ragged: bool = False
    padded: bool = True
    copies: AlignedCopies = field(default_factory=AlignedCopies, repr=False, compare=False)
    memory: ReusedMemory = field(default_factory=ReusedMemory, repr=False, compare=False)
    scores_memory: ReusedMemory = field(default_factory=ReusedMemory, repr=False, compare=False)

    @property
    def shape(self) -> tuple[int | None, int]:
        """Rows, where known, and features."""
        return self.source.shape

    @property
    def sends_raw(self) -> bool:
        """Whether batches are raw rows on one device."""
        host = not (self.source.sparse or self.source.on_device)
        return self.raw and host and self.placement.mesh is None

    @property
    def sparse_on_host(self) -> bool:
        """Whether batches are sparse rows that are multiplied on the host (`CSRRows`)."""
        return self.source.sparse and csr_on_host(self.placement)

    def in_float64(self, mean: np.ndarray | None) -> Batches:
        """Return batches of the same rows in float64, about a mean (d,) of this frame if that is given."""
        stays = self.source.sparse or self.source.on_device
        # On a mesh the mean is padded with zeros, like the features.
        frame = self.frame if mean is None or stays else self.frame.about(mean[: self.shape[1]])
        source, size = self.source.in_float64(), self.size
        if source.on_device and source.views:
            size = min(size, max(1024, WIDENED_BYTES // (8 * self.shape[1])))
        wide = np.dtype(np.float64)
        return replace(
            self,
            source=source,
            size=size,
            dtype=wide,
            frame=frame,
            raw=True,
            host_rows=False,
            growing=False,
        )

    def __call__(self, start: int = 0) -> Iterator[Batch]:
        """Iterate over the batches of one pass, beginning at row `start`."""
        made = self._made(start, jax.config.jax_default_device)  # type: ignore[attr-defined]
        if computed_on_device(self.source):
            return one_ahead(made)
        # Also for transfers to a device with memory of its own: updates block this thread.
        waits = self.source.slow or transferred(self.source)
        return read_ahead(made, self.ahead) if self.ahead and waits else made

    def _made(self, start: int, device: Any) -> Iterator[Batch]:
        """Iterate over batches, placed on a default device: that of the caller, since a thread has its own."""
        for one in self._blocks(start):
            with jax.default_device(device):
                batch = self._batch(*one)
            yield batch

    def first(self) -> Any:
        """Return the first batch."""
        return self._batch(*next(interrupts.drawn(self._blocks(0)))).rows

    def _blocks(self, start: int) -> Iterator[tuple[int, int, Block]]:
        """Iterate over blocks: first row, rows of the whole batch, and the block."""
        # Sparse rows are small: every process reads and holds all of them.
        if self.placement.processes > 1 and not self.source.sparse:
            yield from self._own_blocks(start)
            return
        begin, blocks = start, self._source_about_origin.blocks(start, self.size)
        for block in self._growing(start) if self.growing else blocks:
            yield begin, len(block), block
            begin += len(block)

    def _growing(self, start: int) -> Iterator[Block]:
        """Iterate over growing blocks. Their sizes depend on the first row only, so a pass can be continued."""
        begin, n = start, self.shape[0]
        assert n is not None
        while begin < n:
            size = min(self.size, max(FIRST_ROWS, begin))
            block = next(self.source.blocks(begin, size))
            yield block
            begin += len(block)

    # Not a cached property: before Python 3.12 these have a lock, which an interrupt can leave locked.
    @property
    def _source_about_origin(self) -> Source:
        """The source, which subtracts the origin of the frame itself if it rounds to half precision afterwards."""
        origin = self.frame.origin
        return (
            self.source if origin is None or not self.source.shifts else self.source.about(origin)
        )

    @property
    def as_given(self) -> bool:
        """Whether blocks are in the frame already: it is plain, or the source subtracts its origin."""
        return self._further_frame.plain

    @property
    def _further_frame(self) -> Frame:
        """What is left of the frame to be applied to blocks."""
        return Frame(None, self.frame.unit) if self.source.shifts else self.frame

    def _own_blocks(self, start: int) -> Iterator[tuple[int, int, Block]]:
        """Version of `_blocks` for the part of each batch that belongs to this process; it may be empty."""
        (offset, own), source, (n, d) = (
            self.placement.local_rows(self.size),
            self.source,
            self.shape,
        )
        columns = self.placement.local_columns(d)
        if isinstance(source, RandomAccess) and n is not None:
            for begin in range(start, n, self.size):
                end = min(begin + self.size, n)
                first = min(begin + offset, end)
                last = min(first + own, end)
                # A batch may end before the rows of this process: it still yields an empty block.
                rows = (first, last) if last > first else (0, 1)
                values = (
                    source.read(*rows)
                    if columns == (0, d)
                    else source.read_columns(*rows, *columns)
                )
                yield first, end - begin, Block(values[: last - first])
            return
        begin = start
        for block in source.blocks(start, self.size):
            if block.weights is not None:
                raise ValueError(
                    f"{source.name} leaves out rows while it is read, which several processes cannot agree on: "
                    "fill missing values, or prepare the data first."
                )
            values = block.values[offset : offset + own, slice(*columns)]
            yield begin + min(offset, len(block)), len(block), Block(values)
            begin += len(block)

    def _batch(self, begin: int, read: int, block: Block) -> Batch:
        """Return a block as rows of the shape of a batch."""
        own = len(block)
        counted = self._counted(begin, read, block)
        weights = block.weights
        if self.source.on_device and self.weights is None and weights is None and own == self.size:
            with jax.enable_x64(self.dtype == np.float64):
                return Batch(self._there(block, None), read, counted)
        if self.weights is not None:
            given = self.weights[begin : begin + own]
            weights = given if weights is None else given * weights
        padded = np.zeros(self._rows, self.dtype)
        padded[:own] = 1 if weights is None else weights
        # The switch is per thread, and this may be the reading thread.
        with jax.enable_x64(self.dtype == np.float64):
            if self.source.on_device:
                return Batch(self._there(block, padded), read, counted)
            if self.sparse_on_host:
                roots = np.sqrt(padded[:own])
                return Batch(csr_rows(block.values, roots, self.frame.unit), read, counted)
            if self.source.sparse:
                room = self._room(block)
                sparse = sparse_rows(
                    block.values, padded, self.dtype, room, self.placement, self.frame.unit
                )
                return Batch(sparse, read, counted)
            if self.host_rows:
                rows_here = self._on_host(np.asarray(block.values), np.sqrt(padded[:own]))
                return Batch(rows_here, read, counted)
            if self.raw:
                roots = np.sqrt(padded if self.padded else padded[:own])
                return Batch(self._raw(np.asarray(block.values), roots), read, counted)
            rows = self._dense(np.asarray(block.values), padded, weights is not None)
            return Batch(rows, read, counted)

    def _there(self, block: Block, padded: np.ndarray | None) -> DenseRows:
        """Return rows that are on the device; `padded` are the weights of the batch, None if all of them are 1."""
        return rows_on_device(
            block.values,
            padded,
            self.weights is not None,
            self.dtype,
            self.placement,
            self._further_frame,
        )

    def _room(self, block: Block) -> int | None:
        """Return the number of entries for which a sparse batch has space; None if the block decides it."""
        room = self.source.most_entries(self.size)
        if not self.ragged:
            return room
        count = int(block.values.nnz) if room is None else room
        return shared_size(count, LEAST_ENTRIES, self.size * self.shape[1])

    def _counted(self, begin: int, read: int, block: Block) -> int:
        """Return the number of rows of the whole batch with a weight above 0."""
        if self.weights is None:
            return read if block.weights is None else int(np.count_nonzero(block.weights))
        if block.weights is not None:
            given = self.weights[begin : begin + len(block)]
            return int(np.count_nonzero(given * block.weights))
        # The block of one of several processes begins within the batch.
        shared = self.placement.processes > 1 and not self.source.sparse
        first = begin - (min(self.placement.local_rows(self.size)[0], read) if shared else 0)
        return int(np.count_nonzero(self.weights[first : first + read]))

    def _on_host(self, values: np.ndarray, roots: np.ndarray) -> HostRows:
        """Return dense rows in host memory: in the frame, and multiplied by the roots of their weights."""
        if not self.frame.plain:
            values = self.frame.applied(values, self.dtype, self._own_columns)
        else:
            values = converted(values, self.dtype, self.memory)
        if (roots != 1).any():
            values = values * roots[:, None]
        return HostRows(values, roots, memory=self.scores_memory)

    def _dense(self, values: np.ndarray, weights: np.ndarray, weighted: bool) -> DenseRows:
        """Return dense rows: in the frame, weighted and padded."""
        roots = np.sqrt(weights)
        whole = values.dtype.kind in "ui" and values.dtype.itemsize <= 2
        if whole and self.frame.plain and not weighted:
            return self.placement.dense(
                *_widened(*self._placed(values, roots), np.dtype(self.dtype))
            )
        if not self.frame.plain:
            values = self.frame.applied(values, self.dtype, self._own_columns)
        elif values.dtype != self.dtype or not values.flags.c_contiguous:
            values = np.ascontiguousarray(values, dtype=self.dtype)
        if weighted:
            values = values * roots[: len(values), None]
        return self.placement.dense(*self._placed(values, roots))

    def _raw(self, values: np.ndarray, roots: np.ndarray) -> RawRows:
        """Return rows as they are, with the roots of their weights and their frame."""
        kept = values.dtype.isnative and (values.dtype.kind, values.dtype.itemsize) in SENT
        values = np.ascontiguousarray(values, None if kept else self.dtype)
        rows: Any
        weights: Any
        if jax.default_backend() == "cpu" and self.placement.mesh is None:
            rows = self._filled(values) if self.padded else values
            weights = roots  # compiled functions take them as they are
        else:
            rows, weights = self._placed(values, roots)
        return RawRows(rows, weights, *self._frame_there, self.placement.mesh)

    @property
    def _frame_there(self) -> tuple[jax.Array, jax.Array]:
        """Origin (d,) and unit () on the device.

        They are kept. Not by `cached_property`, whose lock in Python 3.11 an interrupt can leave locked.
        """
        kept: tuple[jax.Array, jax.Array] | None = self.__dict__.get("_kept_frame")
        if kept is None:
            d = self.shape[1]
            origin = np.zeros(d) if self.frame.origin is None else self.frame.origin
            unit = self.placement.replicated(np.asarray(self.frame.unit))
            kept = self.__dict__["_kept_frame"] = (self.placement.per_feature(origin), unit)
        return kept

    @property
    def _own_columns(self) -> slice:
        """Columns that this process reads."""
        return slice(*self.placement.local_columns(self.shape[1]))

    def _placed(self, values: np.ndarray, roots: np.ndarray) -> tuple[jax.Array, jax.Array]:
        """Return rows and the roots of their weights on their devices."""
        filled = self._filled(values)
        if self.placement.mesh is None and jax.default_backend() == "cpu":
            filled = self.copies.aligned(filled)
        rows = self.placement.batch(filled, self.shape[1])
        return rows, self.placement.per_row(roots)

    @property
    def _rows(self) -> int:
        """Rows of a batch that this process reads, with padding."""
        alone = self.placement.processes == 1 or self.source.sparse
        return self.size if alone else self.placement.local_rows(self.size)[1]

    def _filled(self, values: np.ndarray) -> np.ndarray:
        """Return rows padded with zeros to the size of the batch."""
        if len(values) == self._rows:
            return np.asarray(values)
        filled = np.zeros((self._rows, values.shape[1]), values.dtype)
        filled[: len(values)] = values
        return filled


def transferred(source: Source) -> bool:
    """Return whether rows of the host are transferred to a device with memory of its own."""
    return not source.on_device and jax.default_backend() != "cpu"


def computed_on_device(source: Source) -> bool:
    """Return whether rows are computed on the device when they are drawn, such as the activations of a network.

    The host may have to wait in the middle of an update, for example to choose a branch. So the computation of the
    next batch is started before the update, and the device continues with it meanwhile.
    """
    return source.on_device and not source.views


def batches_in_memory(source: Source, dtype: Any, *, copied: bool) -> int:
    """Return the number of batches that are in memory at a time.

    Views of an array count only if they must be copied: to be converted, or because of weights or a frame
    (`copied`).
    """
    if source.on_device:
        return DEVICE_BUFFERS
    if transferred(source):
        return 2 + AHEAD
    if source.views and not copied and source.dtype == dtype:
        return 1 if source.slow else 2
    return 2 + (AHEAD if source.slow else 0)


@partial(jax.jit, static_argnums=2)
def _widened(values: jax.Array, roots: jax.Array, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Convert integers to the precision of the updates, on the device."""
    return values.astype(dtype), roots
