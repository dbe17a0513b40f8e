"""From a source to the game: batches of one shape, read ahead on a thread of their own.

Blocks of a source become rows on the device: the last one filled up with rows of weight 0, whole numbers
and sparse entries sent as they are and widened there. Reading goes on while the device computes, and
never holds more than a stated number of batches.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from eigengame import _check
from eigengame.game.rows import DenseRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.sharding.gather import whole
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.device_rows import first_nonfinite, rows_on_device
from eigengame.solver.frame import Frame
from eigengame.solver.raw_rows import RawRows
from eigengame.sources import DEVICE_BUFFERS, Block, RandomAccess, Source

AHEAD = 2
"""Batches read before they are asked for."""

SENT = {("f", 2), ("f", 4), ("f", 8), ("u", 1), ("i", 1), ("u", 2), ("i", 2), ("u", 4), ("i", 4)}
"""Kinds and sizes of numbers that are sent as they are where they are widened on the device."""


class Batch(NamedTuple):
    """Rows of the game, how many of the source's rows they are, and how many of those count."""

    rows: Any
    read: int
    counted: int


@dataclass(frozen=True)
class Feed:
    """Batches of a source, as rows of the game.

    Parameters
    ----------
    source : Source
    size : int
        Rows for each batch.
    dtype : dtype
        Precision of play.
    weights : array of shape (n,), optional
        How often each row counts.
    frame : Frame
        Origin and unit of the rows of the game. Sparse rows have no origin.
    ahead : int
        Batches that may be read before they are asked for; 0 reads each when it is, and so does a
        source in memory.
    place : Placement
        Where batches go: a mesh fills them up further, to what its devices can share.
    raw : bool
        Whether dense rows of the host are sent as they are, to be brought into the frame in float64 on the device
        (`RawRows`). Needs ``dtype=float64``.
    """

    source: Source
    size: int
    dtype: Any
    weights: np.ndarray | None = None
    frame: Frame = Frame()  # noqa: RUF009 - immutable
    ahead: int = AHEAD
    place: Placement = ONE_DEVICE
    raw: bool = False

    @property
    def shape(self) -> tuple[int | None, int]:
        """Rows, where known, and features."""
        return self.source.shape

    @property
    def held(self) -> int:
        """Batches in memory at once: views of an array count only where they must be copied."""
        if self.source.on_device:
            return DEVICE_BUFFERS
        plain = self.weights is None and self.frame.plain and self.source.dtype == self.dtype
        if self.source.views and plain:
            return 1 if self.source.slow else 2
        return 2 + (self.ahead if self.source.slow else 0)

    @property
    def sends_raw(self) -> bool:
        """Whether batches are raw rows of one device."""
        host = not (self.source.sparse or self.source.on_device)
        return self.raw and host and self.place.mesh is None

    def in_float64(self, mean: np.ndarray | None) -> Feed:
        """Return the feed of the same rows in float64, about a mean (d,) of this frame where that is given."""
        stays = self.source.sparse or self.source.on_device
        # On a mesh a mean is filled up with zeros, like the features it belongs to.
        frame = self.frame if mean is None or stays else self.frame.about(mean[: self.shape[1]])
        source = self.source.in_float64()
        return replace(self, source=source, dtype=np.dtype(np.float64), frame=frame, raw=True)

    def __call__(self, start: int = 0) -> Iterator[Batch]:
        """Give the batches of one pass from row `start` on."""
        made = (self._batch(*one) for one in self._blocks(start))
        return ahead(made, self.ahead) if self.ahead and self.source.slow else made

    def first(self) -> Any:
        """Return the first batch."""
        return self._batch(*next(self._blocks(0))).rows

    def _blocks(self, start: int) -> Iterator[tuple[int, int, Block]]:
        """Give the row a block begins at, the rows of its whole batch, and the block."""
        # Sparse rows are small: every process reads, and holds, all of them.
        if self.place.processes > 1 and not self.source.sparse:
            yield from self._own_blocks(start)
            return
        begin = start
        for block in self.source.blocks(start, self.size):
            yield begin, len(block), block
            begin += len(block)

    def _own_blocks(self, start: int) -> Iterator[tuple[int, int, Block]]:
        """Give the same for the part of each batch that is this process's own; it may be empty."""
        (offset, own), source, (n, d) = self.place.own_rows(self.size), self.source, self.shape
        columns = self.place.own_columns(d)
        if isinstance(source, RandomAccess) and n is not None:
            for begin in range(start, n, self.size):
                end = min(begin + self.size, n)
                first = min(begin + offset, end)
                last = min(first + own, end)
                # A batch may end before this process's rows: it still has to say that it has none.
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
                    f"{source.name} leaves rows out as it is read, which several processes cannot agree on: "
                    "fill what is missing, or prepare the data first."
                )
            values = block.values[offset : offset + own, slice(*columns)]
            yield begin + min(offset, len(block)), len(block), Block(values)
            begin += len(block)

    def _batch(self, begin: int, read: int, block: Block) -> Batch:
        """Return a block as rows of this feed's shape."""
        own = len(block)
        counted = self._counted(begin, read, block)
        weights = block.weights
        if self.weights is not None:
            given = self.weights[begin : begin + own]
            weights = given if weights is None else given * weights
        padded = np.zeros(self._rows, self.dtype)
        padded[:own] = 1 if weights is None else weights
        # The switch belongs to a thread, and this may be the reader's.
        with jax.enable_x64(self.dtype == np.float64):
            if self.source.on_device:
                weighted = self.weights is not None
                made = rows_on_device(block.values, padded, weighted, self.dtype, self.place)
                return Batch(made, read, counted)
            if self.source.sparse:
                room = self.source.most_entries(self.size)
                sparse = sparse_rows(
                    block.values, padded, self.dtype, room, self.place, self.frame.unit
                )
                return Batch(sparse, read, counted)
            if self.raw:
                return Batch(self._raw(np.asarray(block.values), np.sqrt(padded)), read, counted)
            rows = self._dense(np.asarray(block.values), padded, weights is not None)
            return Batch(rows, read, counted)

    def _counted(self, begin: int, read: int, block: Block) -> int:
        """Return how many rows of the whole batch have a weight above 0."""
        if self.weights is None:
            return read if block.weights is None else int(np.count_nonzero(block.weights))
        if block.weights is not None:
            given = self.weights[begin : begin + len(block)]
            return int(np.count_nonzero(given * block.weights))
        # The block of one process among several begins within the batch.
        shared = self.place.processes > 1 and not self.source.sparse
        first = begin - (min(self.place.own_rows(self.size)[0], read) if shared else 0)
        return int(np.count_nonzero(self.weights[first : first + read]))

    def _dense(self, values: np.ndarray, weights: np.ndarray, weighted: bool) -> DenseRows:
        """Return dense rows: subtracted, weighted and filled up."""
        roots = np.sqrt(weights)
        whole = values.dtype.kind in "ui" and values.dtype.itemsize <= 2
        if whole and self.frame.plain and not weighted:
            return self.place.dense(*_widened(*self._placed(values, roots), np.dtype(self.dtype)))
        if not self.frame.plain:
            values = self.frame.applied(values, self.dtype, self._own_columns)
        elif values.dtype != self.dtype or not values.flags.c_contiguous:
            values = np.ascontiguousarray(values, dtype=self.dtype)
        if weighted:
            values = values * roots[: len(values), None]
        return self.place.dense(*self._placed(values, roots))

    def _raw(self, values: np.ndarray, roots: np.ndarray) -> RawRows:
        """Return rows as they are, with the roots of their weights and the frame beside them."""
        kept = values.dtype.isnative and (values.dtype.kind, values.dtype.itemsize) in SENT
        values = np.ascontiguousarray(values, None if kept else self.dtype)
        rows, weights = self._placed(values, roots)
        return RawRows(rows, weights, *self._frame_there, self.place.mesh)

    @cached_property
    def _frame_there(self) -> tuple[jax.Array, jax.Array]:
        """Origin (d,) and unit () on the device."""
        d = self.shape[1]
        origin = np.zeros(d) if self.frame.origin is None else self.frame.origin
        return self.place.per_feature(origin), self.place.everywhere(np.asarray(self.frame.unit))

    @property
    def _own_columns(self) -> slice:
        """Columns of a batch that this process reads."""
        return slice(*self.place.own_columns(self.shape[1]))

    def _placed(self, values: np.ndarray, roots: np.ndarray) -> tuple[jax.Array, jax.Array]:
        """Return rows and the roots of their weights where they belong."""
        rows = self.place.batch(self._filled(values), self.shape[1])
        return rows, self.place.per_row(roots)

    @property
    def _rows(self) -> int:
        """Rows that this process brings to a batch."""
        alone = self.place.processes == 1 or self.source.sparse
        return self.size if alone else self.place.own_rows(self.size)[1]

    def _filled(self, values: np.ndarray) -> np.ndarray:
        """Return rows followed by zeros up to the batch's size."""
        missing = self._rows - len(values)
        return np.pad(values, ((0, missing), (0, 0))) if missing else np.asarray(values)


def refuse_unless_finite(feed: Feed, scatter: Any) -> None:
    """Raise where a number of the data was NaN or infinite, and say which.

    One such number makes the scatter (d,) of its column so: good data is not read once more to be
    checked.
    """
    scatter = whole(scatter)
    if np.isfinite(scatter).all():
        return
    source, begin = feed.source, 0
    for block in source.blocks(0, feed.size) if source.again else ():
        if source.on_device:
            first_nonfinite(source, block.values, begin)
            begin += len(block)
            continue
        values = block.values.data if source.sparse else np.asarray(block.values)
        _check.finite(source.name, values, places=range(begin, begin + max(len(values), 1)))
        begin += len(block)
    largest = np.finfo(scatter.dtype).max
    raise ValueError(
        f"{source.name} has NaN or infinite numbers, or some whose squares add up to more than "
        f"{largest:.2g}: remove or fill them, or divide by the largest."
    )


def sparse_rows(
    values: Any,
    weights: np.ndarray,
    dtype: Any,
    room: int | None,
    place: Placement = ONE_DEVICE,
    unit: float = 1.0,
) -> SparseRows:
    """Return CSR rows with a fixed number of places: `room`, or the next power of two; divided by `unit`."""
    count, size = int(values.nnz), len(weights)
    places = room if room is not None else max(64, 1 << (count - 1).bit_length())
    entries = np.zeros(places, dtype)
    row = np.full(places, size - 1, np.int32)
    column = np.zeros(places, np.int32)
    entries[:count] = values.data if unit == 1 else values.data / unit
    column[:count] = values.indices
    row[:count] = np.repeat(np.arange(values.shape[0], dtype=np.int32), np.diff(values.indptr))
    return SparseRows(
        place.everywhere(entries),
        place.everywhere(row),
        place.everywhere(column),
        place.everywhere(weights),
        features=place.width(values.shape[1]),
    )


@partial(jax.jit, static_argnums=2)
def _widened(values: jax.Array, roots: jax.Array, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Return whole numbers in the precision of play: they travelled as they are."""
    return values.astype(dtype), roots


def ahead(items: Iterator[Any], most: int) -> Iterator[Any]:
    """Give the items, drawn on a thread that is never more than `most` of them ahead.

    An error in the thread is raised here, after the items before it. Whoever stops listening stops the
    thread.
    """
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=most)
    stop = threading.Event()

    def put(kind: str, item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put((kind, item), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def draw() -> None:
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=draw, name="eigengame-reader", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = waiting.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
