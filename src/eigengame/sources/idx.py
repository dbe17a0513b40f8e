"""Idx files, the format of MNIST: read in blocks if plain, in order if gzipped."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from eigengame.sources._array_file import ArrayFileSource
from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._file_source import FileSource
from eigengame.sources._paths import local_file
from eigengame.sources._stored_arrays import flat_shape, image_shape, to_native

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""Dtypes by the third byte of an idx file."""

GZIP = b"\x1f\x8b"

MAX_GZIP_RATIO = 1032
"""Largest possible ratio of uncompressed to compressed bytes."""


def open_idx(path: str | os.PathLike[str], name: str | None = None) -> Source:
    """Return the rows of an idx file on local disk, gzipped or not. Bytes stay uint8.

    Parameters
    ----------
    path : path
    name : str, optional
        Defaults to the path.
    """
    path = local_file(path, "idx files")
    with open(path, "rb") as file:
        if file.read(2) == GZIP:
            return GzippedIdxSource(path, name or path)
        file.seek(0)
        shape, dtype = read_header(file, name or path)
        offset = file.tell()
    source = ArrayFileSource(path, shape, dtype, offset=offset, name=name)
    expected, size = offset + math.prod(shape) * dtype.itemsize, os.stat(path).st_size
    if size != expected:
        raise SourceError(
            f"{source.name} has {size} bytes, but its header describes {expected}, shape {shape}: it is "
            "damaged; copy it again."
        )
    return source


class GzippedIdxSource(FileSource):
    """Rows of a gzipped idx file, decompressed in each pass without loading the whole file.

    For many passes or random access, unzip the file.
    """

    path: str

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        try:
            with gzip.open(path) as file:
                shape, dtype = read_header(file, self.name)
                self._offset = file.tell()
        except (EOFError, OSError, zlib.error) as error:
            raise SourceError(
                f"{self.name} cannot be decompressed ({error}): copy it again."
            ) from None
        self.shape = flat_shape(self.name, shape, dtype)
        self.image_shape = image_shape(shape)
        self.dtype, self._stored = dtype.newbyteorder("="), dtype
        needed, size = math.prod(shape) * dtype.itemsize, os.stat(path).st_size
        if needed > MAX_GZIP_RATIO * size:
            raise SourceError(
                f"{self.name} is damaged: its header describes shape {shape}, {needed} bytes, more than "
                f"{size} compressed bytes can contain: copy it again."
            )

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows. Earlier rows are decompressed too."""
        (rows, features), row = self.shape, start
        assert rows is not None
        row_bytes = features * self._stored.itemsize
        try:
            with gzip.open(self.path) as file:
                file.seek(self._offset + start * row_bytes)
                for row in range(start, rows, size):
                    count = min(size, rows - row)
                    read = file.read(count * row_bytes)
                    if len(read) < count * row_bytes:
                        raise EOFError(f"it ends {count * row_bytes - len(read)} bytes early")
                    # Reading to the end verifies gzip's checksum before the last rows are used.
                    if row + count == rows and file.read(1):
                        raise EOFError("it continues after the last row")
                    yield Block(to_native(np.frombuffer(read, self._stored).reshape(count, -1)))
        except (EOFError, OSError, zlib.error) as error:
            raise SourceError(
                f"{self.name} is truncated or damaged: of the {rows} rows in its header, those at or after "
                f"row {row} cannot be read ({error}): copy it again."
            ) from None


def read_header(
    file: IO[bytes] | gzip.GzipFile, name: str
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of an idx file, and leave it at the first number."""
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES:
        raise SourceError(
            f"{name} is not an idx file: it begins with {magic.hex(' ') or 'nothing'}, where 00 00, a type "
            f"of {', '.join(f'{code:02x}' for code in TYPES)} and the number of axes are expected."
        )
    axes = file.read(4 * magic[3])
    if len(axes) < 4 * magic[3]:
        raise SourceError(f"{name} is truncated within its header: copy it again.")
    shape = struct.unpack(f">{magic[3]}I", axes)
    if len(shape) == 1:
        raise SourceError(
            f"{name} has one axis of {math.prod(shape)}: these look like labels; give the file of images."
        )
    return shape, np.dtype(TYPES[magic[2]])
