"""CSR matrices on disk: only the row pointers are kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigengame.sources._base import Block, RandomAccess, SourceError, one_line
from eigengame.sources._chunked_array import check_chunk
from eigengame.sources._file_source import FileSource
from eigengame.sources._memory import check_limit
from eigengame.sources._stored_arrays import NUMBERS, flat_shape
from eigengame.sources.sparse import most_entries


class StoredCsrSource(FileSource, RandomAccess):
    """Rows of a CSR matrix that is stored as the arrays `data`, `indices` and `indptr`.

    Parameters
    ----------
    open_group : callable
        Returns a context manager that opens the group of the three arrays for reading.
    shape : tuple of int
    name : str
    feature_names : sequence of str, optional
    path, key : str, optional
        File, and the place of the group in it, for the fingerprint.
    max_bytes : int, optional
        Largest size of the row pointers, and of a chunk. Defaults to 4 GiB.
    """

    sparse = True

    def __init__(
        self,
        open_group: Callable[[], AbstractContextManager[Any]],
        shape: Sequence[int],
        name: str,
        *,
        feature_names: Sequence[str] | None = None,
        path: str | None = None,
        key: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._open_group, self.name, self.path, self.key = open_group, name, path, key
        with open_group() as group:
            check_members(group, name, max_bytes)
            self.shape = flat_shape(name, shape, group["data"].dtype)
            self.dtype = np.dtype(group["data"].dtype).newbyteorder("=")
            self._pointers = np.asarray(read_member(group["indptr"], name), np.int64)
            entries = min(group["data"].shape[0], group["indices"].shape[0])
        rows, features = self.shape
        steps = np.diff(self._pointers)
        if len(steps) != rows or self._pointers[0] or (steps < 0).any():
            raise SourceError(
                f"{name}: indptr does not describe {rows} rows: it has {len(steps)} steps, which must be "
                "at least 0, and must begin at 0; write it again."
            )
        if entries < self._pointers[-1]:
            raise SourceError(
                f"{name} is truncated: indptr announces {self._pointers[-1]} entries, but the file has "
                f"{entries}: write it again."
            )
        if feature_names is not None and len(feature_names) != features:
            raise SourceError(
                f"{name} has {features} features, but {len(feature_names)} feature names."
            )
        self.feature_names = feature_names

    def read(self, begin: int, end: int) -> csr_array:
        """Return rows `begin` to `end`."""
        with self._open_group() as group:
            return self._rows(ChunkReader(group["data"]), ChunkReader(group["indices"]), begin, end)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        rows = len(self._pointers) - 1
        with self._open_group() as group:
            data, indices = ChunkReader(group["data"]), ChunkReader(group["indices"])
            for begin in range(start, rows, size):
                yield Block(self._rows(data, indices, begin, min(begin + size, rows)))

    def _rows(self, data: ChunkReader, indices: ChunkReader, begin: int, end: int) -> csr_array:
        """Return rows `begin` to `end` of the open arrays."""
        pointers = self._pointers[begin : end + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        try:
            values, columns = data.read(first, last), indices.read(first, last)
        except MemoryError:
            raise
        except Exception as error:  # codecs raise errors of any type
            raise SourceError(
                f"{self.name}: rows {begin} to {end} cannot be read ({error}): it is damaged, or its codec "
                "is missing."
            ) from error
        width = self.shape[1]
        if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < width:
            raise SourceError(
                f"{self.name}: rows {begin} to {end} have feature indices from {columns.min()} to "
                f"{columns.max()}, but there are {width} features: it is damaged; write it again."
            )
        entries = (values.astype(self.dtype, copy=False), columns, pointers - first)
        return csr_array(entries, shape=(end - begin, width))

    def most_entries(self, size: int) -> int:
        """Return the largest number of entries in a block of `size` rows."""
        return most_entries(self._pointers, size)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, number of entries, and the file's size and time."""
        return super().fingerprint() | {"entries": int(self._pointers[-1])}


def check_members(group: Any, name: str, max_bytes: int | None) -> None:
    """Raise if the three arrays of a sparse matrix have other kinds of numbers, or need too much memory."""
    for part, kinds in (("data", NUMBERS), ("indices", "iu"), ("indptr", "iu")):
        array = group[part]
        shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
        if shape is None or dtype is None or len(shape) != 1 or dtype.kind not in kinds:
            raise SourceError(
                f"{name} is not a sparse matrix: {part} has shape {shape} and dtype {dtype}, where one axis of "
                f"{'numbers' if part == 'data' else 'integers'} is expected; write it again."
            )
        check_chunk(f"{name}/{part}", array.chunks, dtype, max_bytes)
    check_limit(
        group["indptr"].size * 8,
        f"{name}: its row pointers must be in memory, which",
        "split it into files of fewer rows",
        max_bytes,
    )


def read_member(array: Any, name: str) -> np.ndarray:
    """Return all numbers of an array in a file."""
    try:
        return np.asarray(array[:])
    except MemoryError:
        raise
    except Exception as error:  # codecs raise errors of any type
        raise SourceError(
            f"{name} cannot be read ({one_line(error)}): it is damaged, or its codec is missing."
        ) from error


class ChunkReader:
    """Reader of consecutive ranges of a chunked flat array that reads each chunk once.

    Parameters
    ----------
    array : array of shape (nnz,)
        Read by slices, with the chunk shape in `chunks`.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self._chunk = int(array.chunks[0]) if array.chunks else 1
        self._rest, self._position = np.empty(0, array.dtype), 0

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return entries `begin` to `end`, and keep the rest of the last chunk for the next call."""
        if begin != self._position:
            self._rest, self._position = self._rest[:0], begin
        held = self._position + len(self._rest)
        if end > held:
            stop = min(-(-end // self._chunk) * self._chunk, self._array.shape[0])
            fresh = np.asarray(self._array[held:stop])
            self._rest = np.concatenate([self._rest, fresh]) if len(self._rest) else fresh
        found, self._rest = self._rest[: end - begin], self._rest[end - begin :]
        self._position = end
        return found
