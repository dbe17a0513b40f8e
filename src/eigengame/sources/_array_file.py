"""Plain arrays in local files: rows are read into memory, so that a shrinking file raises an error.

A page of a memory map that is no longer in the file ends the process with SIGBUS, which Python cannot handle. Only
arrays that are stored by columns are mapped, and the size of their file is compared before each block.
"""

from __future__ import annotations

import math
import mmap
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame._system.reused_memory import ReusedMemory, aligned_empty
from eigengame.sources._base import Block, SourceError
from eigengame.sources._stored_arrays import StoredArraySource, to_native

STEP = 2**30
"""Bytes that are requested from the system at a time. Linux returns at most 2 GiB."""


class ArrayFileSource(StoredArraySource):
    """Rows of an array that is stored in a file as in memory.

    The file stays open, so a file that is replaced by another one of the same name is not mixed with it.

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
        self._stored, self._offset = np.dtype(dtype), offset
        self._bytes = math.prod(shape) * self._stored.itemsize
        self._file = PositionedFile(path)
        available = self._file.size() - offset
        if available < self._bytes:
            raise SourceError(
                f"{self.name} is truncated: an array of shape {shape} and dtype {self._stored} needs "
                f"{self._bytes} bytes, but the file has {max(available, 0)}: copy or write it again."
            )
        # A block is one range of bytes only if rows are contiguous.
        self._row_bytes = self._bytes // shape[0] if order == "C" else 0
        self._mapped: np.ndarray | None = None
        if order == "F":
            pages = self._file.map()
            self._mapped = np.ndarray(shape, self._stored, pages, offset, order="F")
        self._storage = {"stored": self._stored.str, "order": order, "offset": offset}

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`."""
        if self._mapped is not None:
            self._check_size()
            return to_native(self._mapped[begin:end].reshape(end - begin, -1))
        return to_native(self._stored_rows(begin, end, ReusedMemory()))

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return columns `first` to `last` of these rows. The others are not read if these are few."""
        features = self.shape[1]
        if self._mapped is not None or 2 * (last - first) > features:
            return self.read(begin, end)[:, first:last]
        rows = aligned_empty((end - begin, last - first), self._stored)
        skipped = first * self._stored.itemsize
        for row, values in enumerate(rows, start=begin):
            self._fill(values, self._offset + row * self._row_bytes + skipped)
        return to_native(rows)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        rows = self.shape[0]
        assert rows is not None
        self._file.advise_sequential()
        memory = ReusedMemory()
        for begin in range(start, rows, size):
            end = min(begin + size, rows)
            # The generator keeps no reference to a block, so that its memory can be used again.
            yield Block(
                to_native(self._stored_rows(begin, end, memory))
                if self._mapped is None
                else self.read(begin, end)
            )

    def _stored_rows(self, begin: int, end: int, memory: ReusedMemory) -> np.ndarray:
        """Return rows `begin` to `end` in the byte order of the file, if they are contiguous."""
        rows = memory.empty((end - begin, self.shape[1]), self._stored)
        self._fill(rows, self._offset + begin * self._row_bytes)
        return rows

    def _fill(self, values: np.ndarray, position: int) -> None:
        """Read the numbers of a contiguous array from a position in the file."""
        if self._file.read_into(values.reshape(-1).view(np.uint8).data, position):
            return
        self._check_size()
        raise self._shrunk()  # it shrank and grew again

    def _check_size(self) -> None:
        """Raise if the file no longer holds the whole array."""
        if self._file.size() < self._offset + self._bytes:
            raise self._shrunk()

    def _shrunk(self) -> SourceError:
        return SourceError(
            f"{self.name} was truncated while it was read: it had {self._offset + self._bytes} bytes or more, "
            f"now it has {self._file.size()}. Another program writes to it: wait until it is complete, or "
            "copy it, and start again."
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, storage format, and the file's size and time."""
        return super().fingerprint() | self._storage


class PositionedFile:
    """A file that several threads read at positions of their own.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        # A descriptor, closed with this object: sources have no method to close them.
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._descriptor)
        self._lock = threading.Lock()

    def size(self) -> int:
        """Return the present size in bytes."""
        return os.fstat(self._descriptor).st_size

    def map(self) -> mmap.mmap:
        """Return the whole file as a memory map."""
        return mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)

    def advise_sequential(self) -> None:
        """Tell the system that the file is read from its beginning to its end."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def read_into(self, buffer: memoryview, position: int) -> bool:
        """Fill a buffer from a position; return False if the file ends before."""
        done = 0
        while done < len(buffer):
            count = self._read_part(buffer[done : done + STEP], position + done)
            if not count:
                return False
            done += count
        return True

    def _read_part(self, buffer: memoryview, position: int) -> int:
        """Read some bytes; return how many."""
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [buffer], position)
        with self._lock:  # Windows has no call that reads at a position
            os.lseek(self._descriptor, position, os.SEEK_SET)
            read = os.read(self._descriptor, len(buffer))
        buffer[: len(read)] = read
        return len(read)
