"""Plain arrays in local files, mapped into memory: blocks are read-only views."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.sources._base import Block, SourceError
from eigengame.sources._stored_arrays import StoredArraySource, to_native


class MemoryMapSource(StoredArraySource):
    """Rows of an array that is stored in a file as in memory.

    Parameters
    ----------
    path : str
    shape, dtype
        As in `StoredArraySource`.
    offset : int
        Bytes before the first number.
    order : {"C", "F"}
        Whether rows or columns are contiguous.
    name : str, optional
        Defaults to the path.
    key : str, optional
        Name of the array in the file, for the fingerprint.
    """

    views = True

    def __init__(
        self,
        path: str,
        shape: tuple[int, ...],
        dtype: Any,
        *,
        offset: int,
        order: str = "C",
        name: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(name or path, shape, dtype)
        self.path, self.key = path, key
        stored = np.dtype(dtype)
        needed, available = math.prod(shape) * stored.itemsize, os.stat(path).st_size - offset
        if available < needed:
            raise SourceError(
                f"{self.name} is truncated: an array of shape {shape} and dtype {stored} needs {needed} "
                f"bytes, but the file has {max(available, 0)}: copy or write it again."
            )
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._array: np.ndarray = np.ndarray(
            shape, stored, self._map, offset, order="F" if order == "F" else "C"
        )
        # A block is one range of bytes only if rows are contiguous.
        self._row_bytes = needed // shape[0] if order == "C" else 0
        self._offset = offset
        self._storage = {"stored": stored.str, "order": order, "offset": offset}

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`: a view if the byte order is native, else a copy."""
        return to_native(self._array[begin:end].reshape(end - begin, -1))

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return columns `first` to `last` of these rows. Only their pages are fetched from disk."""
        return to_native(self._array[begin:end].reshape(end - begin, -1)[:, first:last])

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows.

        Views are read only when they are used, so each block is prefetched when it is requested.
        """
        for begin in range(start, self._array.shape[0], size):
            end = min(begin + size, self._array.shape[0])
            self._prefetch(begin, end)
            yield Block(self.read(begin, end))

    def _prefetch(self, begin: int, end: int) -> None:
        """Ask the system to fetch rows from disk in the background."""
        if self._row_bytes and hasattr(mmap, "MADV_WILLNEED"):
            first = self._offset + begin * self._row_bytes
            first -= first % mmap.PAGESIZE
            last = self._offset + end * self._row_bytes
            self._map.madvise(mmap.MADV_WILLNEED, first, last - first)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, storage format, and the file's size and time."""
        return super().fingerprint() | self._storage
