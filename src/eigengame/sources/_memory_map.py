"""Plain arrays in a local file, mapped into memory: rows are read-only views, nothing is loaded whole."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.sources._base import Block, RandomAccess, SourceError
from eigengame.sources._digest import digest_of_files
from eigengame.sources._stored_arrays import flat_shape, image_shape, native, stamp


class MemoryMapSource(RandomAccess):
    """Rows of an array that lies in a file as it would in memory.

    Parameters
    ----------
    path : path
    shape : tuple of int
        Of the array; axes after the first are flattened.
    dtype : dtype
    offset : int
        Bytes before the first number.
    order : {"C", "F"}
        Whether rows or columns lie together.
    name : str, optional
        The path where not given.
    key : str, optional
        Which array of the file it is, for the fingerprint.
    """

    views = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: tuple[int, ...],
        dtype: Any,
        *,
        offset: int = 0,
        order: str = "C",
        name: str | None = None,
        key: str | None = None,
    ) -> None:
        self.path, self.key = os.fspath(path), key
        self.name = name or self.path
        self.shape = flat_shape(self.name, shape, dtype)
        self.image_shape = image_shape(shape)
        stored = np.dtype(dtype)
        self.dtype = stored.newbyteorder("=")
        needed, there = math.prod(shape) * stored.itemsize, os.stat(self.path).st_size - offset
        if there < needed:
            raise SourceError(
                f"{self.name} is truncated: an array of shape {shape} and dtype {stored} takes {needed} "
                f"bytes, but {max(there, 0)} are there; copy or write it again."
            )
        with open(self.path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._array: np.ndarray = np.ndarray(
            shape, stored, self._map, offset, order="F" if order == "F" else "C"
        )
        # Only where rows lie together are the bytes of a block known.
        self._row_bytes = needed // shape[0] if order == "C" else 0
        self._offset = offset
        self._lies = {"stored": stored.str, "order": order, "offset": offset}

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`: a view, unless the byte order is another machine's."""
        return native(self._array[begin:end].reshape(end - begin, -1))

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return some columns of these rows: of the others nothing is fetched but what lies on one page."""
        return native(self._array[begin:end].reshape(end - begin, -1)[:, first:last])

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`.

        A view is not read before it is used, so the system is told of each one when it is asked for.
        """
        for begin in range(start, self._array.shape[0], size):
            end = min(begin + size, self._array.shape[0])
            self._announce(begin, end)
            yield Block(self.read(begin, end))

    def _announce(self, begin: int, end: int) -> None:
        """Ask the system to fetch rows from disk, without waiting for them."""
        if self._row_bytes and hasattr(mmap, "MADV_WILLNEED"):
            first = self._offset + begin * self._row_bytes
            first -= first % mmap.PAGESIZE
            last = self._offset + end * self._row_bytes
            self._map.madvise(mmap.MADV_WILLNEED, first, last - first)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, how numbers lie in the file, and the file's size and time."""
        return super().fingerprint() | self._lies | stamp(self.path, self.key)

    def digest(self) -> str | None:
        """Return a digest of the file."""
        return digest_of_files([self.path])
