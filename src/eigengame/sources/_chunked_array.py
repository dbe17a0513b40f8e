"""Arrays that lie in chunks: each chunk is read once in a pass, whatever the size of the blocks."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from eigengame.sources._base import Block, RandomAccess, SourceError, recut
from eigengame.sources._stored_arrays import flat_shape, image_shape, native

SPAN = 2**28
"""Bytes of chunks that are held to cut blocks from."""


class ChunkedArraySource(RandomAccess):
    """Rows of an array on disk that is read by slices: `array[begin:end]`.

    Blocks are cut from spans of whole chunks. Only where the chunks of some rows are together larger than
    `SPAN`, as when each column is a chunk of its own, must they be read again and again.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Of the array; axes after the first are flattened.
    dtype : dtype
    chunks : tuple of int, optional
        Shape of a chunk.
    """

    def __init__(self, name: str, shape: Any, dtype: Any, chunks: Any = None) -> None:
        self.name = name
        self.shape = flat_shape(name, shape, dtype)
        self.image_shape = image_shape(shape)
        self.dtype = np.dtype(dtype).newbyteorder("=")
        most = max(SPAN // (self.shape[1] * self.dtype.itemsize), 1)
        self.chunk = min(int(chunks[0]), most) if chunks else 1

    @abc.abstractmethod
    def opened(self) -> AbstractContextManager[Any]:
        """Give the array, open for reading; each pass opens its own."""

    def remedy(self, array: Any) -> str:
        """Say what may be wrong with an array that could not be read."""
        return "a chunk is damaged, or its codec is missing"

    def fetched(self, array: Any, begin: int, end: int) -> np.ndarray:
        """Return some rows of the open array as they lie in it."""
        return np.asarray(array[begin:end])

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`."""
        with self.opened() as array:
            return self._rows(array, begin, end)

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return some columns of these rows, by the chunks they lie in; of pictures all are read."""
        with self.opened() as array:
            if array.ndim != 2:
                return self._rows(array, begin, end)[:, first:last]
            with self._told(array, begin, end):
                return native(np.asarray(array[begin:end, first:last]))

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`."""
        rows = self.shape[0]
        assert rows is not None
        with self.opened() as array:
            pieces = (
                Block(self._rows(array, begin, end))
                for begin, end in spans(start, rows, size, self.chunk)
            )
            yield from recut(pieces, 0, size)

    def _rows(self, array: Any, begin: int, end: int) -> np.ndarray:
        """Return some rows of the open array, or say which could not be read."""
        with self._told(array, begin, end):
            return native(self.fetched(array, begin, end).reshape(end - begin, -1))

    @contextlib.contextmanager
    def _told(self, array: Any, begin: int, end: int) -> Iterator[None]:
        """Say which rows could not be read."""
        try:
            yield
        except MemoryError:
            raise
        except Exception as error:  # codecs raise what they like
            raise SourceError(
                f"{self.name}: rows {begin} to {end} cannot be read ({error}): {self.remedy(array)}."
            ) from error


def spans(start: int, rows: int, size: int, chunk: int) -> Iterator[tuple[int, int]]:
    """Give ranges of about `size` rows from `start` on that end where a chunk does."""
    step = max(size // chunk, 1) * chunk
    begin, end = start, start // chunk * chunk + step
    while begin < rows:
        yield begin, min(end, rows)
        begin, end = end, end + step
