"""Sparse rows on disk: three flat arrays, of which only the row pointers are held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigengame.sources._base import Block, RandomAccess, SourceError
from eigengame.sources._digest import digest_of_blocks, digest_of_files
from eigengame.sources._stored_arrays import flat_shape, stamp
from eigengame.sources.sparse import most_entries


class StoredCsrSource(RandomAccess):
    """Rows of a CSR matrix that lies on disk as `data`, `indices` and `indptr`.

    Parameters
    ----------
    opened : callable
        Returns a context manager that gives the group with the three arrays, open for reading.
    shape : tuple of int
    name : str
    feature_names : sequence of str, optional
    path, key : str, optional
        The file, and where in it the group is, for the fingerprint.
    """

    sparse = True

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Any]],
        shape: Sequence[int],
        name: str,
        *,
        feature_names: Sequence[str] | None = None,
        path: str | None = None,
        key: str | None = None,
    ) -> None:
        self._opened, self.name, self.path, self.key = opened, name, path, key
        with opened() as group:
            self.shape = flat_shape(name, shape, group["data"].dtype)
            self.dtype = np.dtype(group["data"].dtype).newbyteorder("=")
            self._pointers = np.asarray(group["indptr"][:], np.int64)
            entries = min(group["data"].shape[0], group["indices"].shape[0])
        rows, features = self.shape
        steps = np.diff(self._pointers)
        if len(steps) != rows or self._pointers[0] or (steps < 0).any():
            raise SourceError(
                f"{name}: indptr is not that of {rows} rows: it has {len(steps)} steps, which must be "
                "at least 0 and begin at 0; write it again."
            )
        if entries < self._pointers[-1]:
            raise SourceError(
                f"{name} is truncated: its rows hold {self._pointers[-1]} entries, but {entries} are "
                "there; write it again."
            )
        if feature_names is not None and len(feature_names) != features:
            raise SourceError(
                f"{name} has {features} features, but {len(feature_names)} names for them."
            )
        self.feature_names = feature_names

    def read(self, begin: int, end: int) -> csr_array:
        """Return rows `begin` to `end`."""
        with self._opened() as group:
            return self._rows(Entries(group["data"]), Entries(group["indices"]), begin, end)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`."""
        rows = len(self._pointers) - 1
        with self._opened() as group:
            data, indices = Entries(group["data"]), Entries(group["indices"])
            for begin in range(start, rows, size):
                yield Block(self._rows(data, indices, begin, min(begin + size, rows)))

    def _rows(self, data: Entries, indices: Entries, begin: int, end: int) -> csr_array:
        """Return some rows from the open arrays, or say which could not be read."""
        pointers = self._pointers[begin : end + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        try:
            values, columns = data.take(first, last), indices.take(first, last)
        except MemoryError:
            raise
        except Exception as error:  # codecs raise what they like
            raise SourceError(
                f"{self.name}: rows {begin} to {end} cannot be read ({error}): it is damaged, or its codec "
                "is missing."
            ) from error
        width = self.shape[1]
        if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < width:
            raise SourceError(
                f"{self.name}: rows {begin} to {end} name features from {columns.min()} to "
                f"{columns.max()}, but there are {width}: it is damaged; write it again."
            )
        entries = (values.astype(self.dtype, copy=False), columns, pointers - first)
        return csr_array(entries, shape=(end - begin, width))

    def most_entries(self, size: int) -> int:
        """Return the entries of the fullest block of `size` rows."""
        return most_entries(self._pointers, size)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, number of entries, and the file's size and time."""
        entries = {"entries": int(self._pointers[-1])}
        return super().fingerprint() | entries | stamp(self.path, self.key)

    def digest(self) -> str | None:
        """Return a digest of the file; of a group that the user opened, of all rows."""
        return digest_of_blocks(self) if self.path is None else digest_of_files([self.path])


class Entries:
    """Ranges of a flat array that are asked for in order: each of its chunks is read once.

    Parameters
    ----------
    array : array of shape (nnz,)
        Read by slices; `chunks` says how it lies.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self._chunk = int(array.chunks[0]) if array.chunks else 1
        self._rest, self._at = np.empty(0, array.dtype), 0

    def take(self, begin: int, end: int) -> np.ndarray:
        """Return entries `begin` to `end`, and keep the rest of the last chunk for the next time."""
        if begin != self._at:
            self._rest, self._at = self._rest[:0], begin
        held = self._at + len(self._rest)
        if end > held:
            stop = min(-(-end // self._chunk) * self._chunk, self._array.shape[0])
            fresh = np.asarray(self._array[held:stop])
            self._rest = np.concatenate([self._rest, fresh]) if len(self._rest) else fresh
        taken, self._rest = self._rest[: end - begin], self._rest[end - begin :]
        self._at = end
        return taken
