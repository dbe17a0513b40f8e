"""Partitions of a source, each read by one worker.

Blocks of a Dask collection are partitions. Files are opened again by the worker: only the path and a range of rows
are sent. Rows of an array in memory are sent themselves.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation import PreparedSource
from eigengame.sources import (
    ArraySource,
    Block,
    RandomAccess,
    Source,
    SourceError,
    SparseSource,
    as_source,
)
from eigengame.sources.concatenation import ConcatenatedSource
from eigengame.sources.dask_blocks import DaskSource
from eigengame.sources.matched_columns import MatchedColumns

PARTITION_BYTES = 2**26
"""Size of a partition of a file: 64 MiB."""


class Partitions(NamedTuple):
    """The partitions of a source.

    Attributes
    ----------
    data : list
        Delayed blocks of Dask, or sources.
    lengths : list of int, or None
        Rows of each partition, if all are known.
    steps : tuple of Step
        Preparation of the rows.
    options : dict
        Options of the source of each block.
    """

    data: list[Any]
    lengths: list[int] | None
    steps: tuple[Any, ...] = ()
    options: dict[str, Any] | None = None

    def weights(self, given: np.ndarray | None) -> Sequence[np.ndarray | None]:
        """Return the weights (n,) of all rows, split by partition."""
        if given is None or self.lengths is None:
            return [None] * len(self.data)
        return np.split(given, np.cumsum(self.lengths)[:-1])


class Range(Source):
    """A range of rows of a source with random access.

    Parameters
    ----------
    source : Source
    begin, end : int
    """

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self.source, self.begin, self.end = source, begin, end
        self.name, self.shape = source.name, (end - begin, source.shape[1])
        self.dtype, self.sparse, self.feature_names = (
            source.dtype,
            source.sparse,
            source.feature_names,
        )

    def in_float64(self) -> Source:
        """Return the same rows in float64."""
        read = self.source.in_float64()
        return self if read is self.source else Range(read, self.begin, self.end)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Iterate over the rows from `start` in blocks of `size`."""
        row = self.begin + start
        for block in self.source.blocks(row, size) if row < self.end else ():
            yield block[: self.end - row]
            row += len(block)
            if row >= self.end:
                return


class PaddedSparseSource(SparseSource):
    """A sparse block with space for the next power of two entries, so that similar blocks share one compilation."""

    def most_entries(self, size: int) -> int:
        """Return the entries of the fullest batch of `size` rows, rounded up to a power of two."""
        return 1 << (super().most_entries(size) - 1).bit_length()


def split_up(source: Source) -> Partitions:
    """Return the partitions of a source."""
    if isinstance(source, PreparedSource):
        return split_up(source.source)._replace(steps=source.steps)
    if isinstance(source, DaskSource):
        return Partitions(source.parts, source.lengths, options=source.options)
    if isinstance(source, MatchedColumns):
        return _matched(source, split_up(source.source))
    if isinstance(source, ConcatenatedSource):
        data = [part for one in source.members for part in _of_one(one)]
    elif isinstance(source, RandomAccess):
        data = _of_one(source)
    else:
        raise SourceError(
            f"{source.name} is read in order, so it cannot be split into partitions: give a list of files, a "
            "file with random access to its rows (.npy, HDF5, Zarr, ...), or a Dask array or data frame."
        )
    known = [part.shape[0] for part in data if part.shape[0] is not None]
    return Partitions(data, known if len(known) == len(data) else None)


def _matched(source: MatchedColumns, inner: Partitions) -> Partitions:
    """Return the partitions of a source whose features were matched, from those before the matching."""
    assert source.feature_names is not None
    names = source.feature_names
    return inner._replace(data=[MatchedColumns(part, source.columns, names) for part in inner.data])


def open_partition(data: Any, name: str, steps: tuple[Any, ...], options: dict[str, Any]) -> Source:
    """Return the source of a partition, prepared."""
    if issparse(data):
        data = PaddedSparseSource(data)
    source = data if isinstance(data, Source) else as_source(data, **options)
    source.name = name
    return PreparedSource(source, steps) if steps else source


def _of_one(source: Source) -> list[Source]:
    """Return ranges of a source, or all of it if it is read in order."""
    if isinstance(source, ArraySource | SparseSource):
        return [as_source(source.read(*rows), name=source.name) for rows in _ranges(source)]
    _refuse_unless_sent(source)
    if isinstance(source, RandomAccess):
        return [Range(source.for_worker(), *rows) for rows in _ranges(source)]
    return [source]


def _ranges(source: Source) -> Iterator[tuple[int, int]]:
    """Iterate over the first and last row of partitions of nearly equal size."""
    n, d = source.shape
    assert n is not None
    most = max(1, PARTITION_BYTES // (d * np.dtype(source.dtype).itemsize))
    count = max(1, -(-n // most))
    edges = [n * i // count for i in range(count + 1)]
    return itertools.pairwise(edges)


def _refuse_unless_sent(source: Source) -> None:
    """Raise SourceError if a source cannot be sent to another process."""
    try:
        pickle.dumps(source)
    except Exception as error:
        raise SourceError(
            f"{source.name} cannot be sent to a worker ({error}): give its path, which the worker opens, or a Dask "
            "array."
        ) from None
