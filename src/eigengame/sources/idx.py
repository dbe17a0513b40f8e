"""Idx files, in which MNIST and its kin come: plain ones are mapped, gzipped ones read in order."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._digest import digest_of_files
from eigengame.sources._memory_map import MemoryMapSource
from eigengame.sources._stored_arrays import flat_shape, image_shape, local, native, stamp

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""What the third byte of an idx file says of its numbers."""

GZIP = b"\x1f\x8b"

DEFLATED = 1032
"""Bytes that gzip makes of one byte at the most."""


def open_idx(path: str | os.PathLike[str], name: str | None = None) -> Source:
    """Return the rows of an idx file on local disk, gzipped or not; uint8 stays uint8."""
    path = local(path, "idx files")
    with open(path, "rb") as file:
        gzipped = file.read(2) == GZIP
    return GzippedIdxSource(path, name) if gzipped else IdxSource(path, name)


class IdxSource(MemoryMapSource):
    """Rows of a plain idx file, mapped.

    Parameters
    ----------
    path : path
    name : str, optional
        The path where not given.
    """

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        path = local(path, "idx files")
        with open(path, "rb") as file:
            shape, dtype = header(file, name or path)
            offset = file.tell()
        super().__init__(path, shape, dtype, offset=offset, name=name)
        expected, there = offset + math.prod(shape) * dtype.itemsize, os.stat(path).st_size
        if there != expected:
            raise SourceError(
                f"{self.name} has {there} bytes, but its header says {expected}, shape {shape}: it is damaged; "
                "copy it again."
            )


class GzippedIdxSource(Source):
    """Rows of a gzipped idx file, decompressed anew in each pass.

    It happens on the reader's thread, beside the computing, and memory stays flat whatever the size. For
    many passes, or rows from anywhere, gunzip the file: then it is mapped.

    Parameters
    ----------
    path : path
    name : str, optional
        The path where not given.
    """

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        self.path = local(path, "idx files")
        self.name = name or self.path
        try:
            with gzip.open(self.path) as file:
                shape, dtype = header(file, self.name)
                self._offset = file.tell()
        except (EOFError, OSError, zlib.error) as error:
            raise SourceError(
                f"{self.name} cannot be decompressed ({error}): copy it again."
            ) from None
        self.shape = flat_shape(self.name, shape, dtype)
        self.image_shape = image_shape(shape)
        self.dtype, self._stored = dtype.newbyteorder("="), dtype
        needed, there = math.prod(shape) * dtype.itemsize, os.stat(self.path).st_size
        if needed > DEFLATED * there:
            raise SourceError(
                f"{self.name} is damaged: its header says shape {shape}, {needed} bytes, which {there} bytes "
                "cannot be decompressed to; copy it again."
            )

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`: what comes before is decompressed too."""
        (rows, features), row = self.shape, start
        assert rows is not None
        width = features * self._stored.itemsize
        try:
            with gzip.open(self.path) as file:
                file.seek(self._offset + start * width)
                for row in range(start, rows, size):
                    count = min(size, rows - row)
                    read = file.read(count * width)
                    if len(read) < count * width:
                        raise EOFError(f"it ends {count * width - len(read)} bytes early")
                    # The end is where gzip compares its checksum: before anyone uses the last rows.
                    if row + count == rows and file.read(1):
                        raise EOFError("it goes on after the last row")
                    yield Block(native(np.frombuffer(read, self._stored).reshape(count, -1)))
        except (EOFError, OSError, zlib.error) as error:
            raise SourceError(
                f"{self.name} is truncated or damaged in the {rows} rows of its header, at or after row "
                f"{row} ({error}): copy it again."
            ) from None

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, and the file's size and time."""
        return super().fingerprint() | stamp(self.path)

    def digest(self) -> str | None:
        """Return a digest of the file."""
        return digest_of_files([self.path])


def header(file: IO[bytes] | gzip.GzipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of an idx file, which is then at its first number."""
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES:
        raise SourceError(
            f"{name} is no idx file: it begins with {magic.hex(' ') or 'nothing'}, where 00 00, a type "
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
