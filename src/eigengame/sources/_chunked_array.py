"""Chunked arrays on disk (HDF5, Zarr): a pass reads each chunk once, whatever the block size."""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from eigengame.sources._base import Block, SourceError, rechunk
from eigengame.sources._memory import check_limit
from eigengame.sources._stored_arrays import StoredArraySource, to_native

MAX_SPAN_BYTES = 2**28
"""Memory for the chunks that blocks are cut from."""


class ChunkedArraySource(StoredArraySource):
    """Rows of an array on disk that is read by slices, `array[begin:end]`.

    Blocks are cut from spans of whole chunks. Chunks are read more than once only if the chunks of one span
    of rows exceed `MAX_SPAN_BYTES`, for example if each column is a chunk.

    Parameters
    ----------
    name, shape, dtype
        As in `StoredArraySource`.
    chunks : tuple of int or None
        Shape of a chunk.
    max_bytes : int, optional
        Largest size of a chunk. Defaults to 4 GiB.
    """

    def __init__(
        self, name: str, shape: Any, dtype: Any, chunks: Any, max_bytes: int | None = None
    ) -> None:
        super().__init__(name, shape, dtype)
        check_chunk(name, chunks, dtype, max_bytes)
        max_rows = max(MAX_SPAN_BYTES // (self.shape[1] * self.dtype.itemsize), 1)
        self.chunk = min(int(chunks[0]), max_rows) if chunks else 1

    @abc.abstractmethod
    def open_array(self) -> AbstractContextManager[Any]:
        """Open the array for reading. Each pass opens its own."""

    def failure_cause(self, array: Any) -> str:
        """Return the probable cause of a failed read, for the error message."""
        return "a chunk is damaged, or its codec is missing"

    def fetch(self, array: Any, begin: int, end: int) -> np.ndarray:
        """Return rows of the open array in their stored shape and dtype."""
        return np.asarray(array[begin:end])

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`."""
        with self.open_array() as array:
            return self._rows(array, begin, end)

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return columns of these rows. Of a table only the chunks with these columns are read."""
        with self.open_array() as array:
            if array.ndim != 2:
                return self._rows(array, begin, end)[:, first:last]
            with self._explain_errors(array, begin, end):
                return to_native(np.asarray(array[begin:end, first:last]))

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        rows = self.shape[0]
        assert rows is not None
        with self.open_array() as array:
            pieces = (
                Block(self._rows(array, begin, end))
                for begin, end in chunk_spans(start, rows, size, self.chunk)
            )
            yield from rechunk(pieces, 0, size)

    def _rows(self, array: Any, begin: int, end: int) -> np.ndarray:
        """Return rows of the open array, flattened and in native byte order."""
        with self._explain_errors(array, begin, end):
            return to_native(self.fetch(array, begin, end).reshape(end - begin, -1))

    @contextlib.contextmanager
    def _explain_errors(self, array: Any, begin: int, end: int) -> Iterator[None]:
        """Turn an error while reading rows into a `SourceError` that names them."""
        try:
            yield
        except MemoryError:
            raise
        except Exception as error:  # codecs raise errors of any type
            raise SourceError(
                f"{self.name}: rows {begin} to {end} cannot be read ({error}): "
                f"{self.failure_cause(array)}."
            ) from error


def check_chunk(name: str, chunks: Any, dtype: Any, max_bytes: int | None) -> None:
    """Raise if a chunk, which is read as a whole, is empty or too large."""
    lengths = [int(length) for length in chunks or ()]
    if any(length < 1 for length in lengths):
        raise SourceError(
            f"{name} is damaged: its chunks have shape {tuple(lengths)}; write it again."
        )
    check_limit(
        math.prod(lengths) * np.dtype(dtype).itemsize,
        f"{name}: a chunk of shape {tuple(lengths)}",
        "write it with smaller chunks",
        max_bytes,
    )


def chunk_spans(start: int, rows: int, size: int, chunk: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of about `size` rows from `start` on that end at chunk boundaries."""
    step = max(size // chunk, 1) * chunk
    begin, end = start, start // chunk * chunk + step
    while begin < rows:
        yield begin, min(end, rows)
        begin, end = end, end + step
