"""`.npz` archives: NumPy arrays, read in blocks if not compressed, and SciPy's sparse matrices."""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from eigengame._system.reused_memory import ReusedMemory
from eigengame.sources._array_file import ArrayFileSource
from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._memory import check_memory
from eigengame.sources._paths import local_file
from eigengame.sources._stored_arrays import (
    ArrayInfo,
    choose_array,
    flat_shape,
    image_shape,
    to_native,
)
from eigengame.sources.arrays import ArraySource
from eigengame.sources.npy import read_header
from eigengame.sources.sparse import SparseSource

SPARSE = {"data", "format", "shape"}
"""Members that `scipy.sparse.save_npz` always writes."""

SMALL = 2**26
"""Members of at most this size in bytes are checked when they are opened."""

CRC_STEP = 2**22
"""Bytes that are read at a time to compute a checksum."""

LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Local file header of a zip member: signature, length of the name, length of the extra field."""


class Header(NamedTuple):
    """Header of a member: shape, order and dtype, and the offset of the first number in the member."""

    shape: tuple[int, ...]
    order: str
    dtype: np.dtype[Any]
    offset: int


def open_npz(
    path: str | os.PathLike[str],
    key: str | None = None,
    name: str | None = None,
    max_bytes: int | None = None,
) -> Source:
    """Return the rows of an array of an `.npz` file, or of its sparse matrix.

    Arrays of `np.savez` are read in blocks. Arrays of `np.savez_compressed` and sparse matrices are loaded
    into memory, and refused if they do not fit.

    Parameters
    ----------
    path : path
        On local disk.
    key : str, optional
        Name of the array. Not needed if only one array has rows of numbers.
    name : str, optional
        Defaults to the path.
    max_bytes : int, optional
        Largest size of an array that is loaded into memory. Defaults to 4 GiB.
    """
    path = local_file(path, ".npz files")
    name = name or path
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                member.filename.removesuffix(".npy"): member
                for member in archive.infolist()
                if member.filename.endswith(".npy")
            }
            headers = {key: _read_header(archive, member, name) for key, member in members.items()}
    except (SourceError, MemoryError):
        raise
    except Exception as error:  # zipfile raises errors of many types for a damaged archive
        raise SourceError(
            f"{name} is not a valid .npz file ({error}): copy or write it again."
        ) from None
    if set(headers) >= SPARSE:
        if key is not None:
            raise SourceError(f"{name} is one sparse matrix, without keys: leave out key={key!r}.")
        for part, header in headers.items():
            _check_length(f"{name}:{part}", header, members[part])
        size = sum(member.file_size for member in members.values())
        return _load_sparse(path, name, size, max_bytes)
    found = {key: ArrayInfo(header.shape, header.dtype) for key, header in headers.items()}
    key = choose_array(name, found, key)
    full_name, header, member = f"{name}:{key}", headers[key], members[key]
    flat_shape(full_name, header.shape, header.dtype)
    _check_length(full_name, header, member)
    if member.compress_type == zipfile.ZIP_STORED:
        return StoredMemberSource(path, header, member, name=full_name, key=key)
    check_memory(
        member.file_size,
        f"{full_name} is compressed and must be loaded into memory: it",
        "write it by savez instead of savez_compressed, to have it read in blocks",
        max_bytes,
    )
    array = _load_array(path, key, full_name)
    source = ArraySource(array.reshape(len(array), -1), full_name)
    source.path, source.key, source.image_shape = path, key, image_shape(array.shape)
    return source


class StoredMemberSource(ArrayFileSource):
    """Rows of an uncompressed member, read in blocks.

    The first pass verifies the CRC-32 of the member before it yields the last rows.
    """

    def __init__(
        self, path: str, header: Header, member: zipfile.ZipInfo, *, name: str, key: str
    ) -> None:
        begin = _member_offset(path, member)
        super().__init__(
            path,
            header.shape,
            header.dtype,
            offset=begin + header.offset,
            order=header.order,
            name=name,
            key=key,
        )
        self._member, self._begin, self._verified = member, begin, False
        if member.file_size <= SMALL:
            self._verify()

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`. The whole member is verified first."""
        self._verify()
        return super().read(begin, end)

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return columns `first` to `last` of these rows. The whole member is verified first."""
        self._verify()
        return super().read_columns(begin, end, first, last)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows; verify the checksum before the last."""
        if self._verified or not self._row_bytes:
            yield from super().blocks(start, size)
            return
        rows = self.shape[0]
        assert rows is not None
        memory = ReusedMemory()
        crc = self._update_crc(self._begin, self._offset + start * self._row_bytes, 0)
        for begin in range(start, rows, size):
            end = min(begin + size, rows)
            values = self._stored_rows(begin, end, memory)
            crc = zlib.crc32(values.reshape(-1).view(np.uint8).data, crc)
            if end == rows:
                self._compare_crc(crc)
            yield Block(to_native(values))
            del values  # so that its memory can be used again

    def _verify(self) -> None:
        """Compare the checksum of the whole member, once."""
        if not self._verified:
            end = self._begin + self._member.file_size
            self._compare_crc(self._update_crc(self._begin, end, 0))

    def _update_crc(self, begin: int, end: int, crc: int) -> int:
        """Return the checksum after bytes `begin` to `end` of the file."""
        for first in range(begin, end, CRC_STEP):
            part = np.empty(min(CRC_STEP, end - first), np.uint8)
            self._fill(part, first)
            crc = zlib.crc32(part.data, crc)
        return crc

    def _compare_crc(self, crc: int) -> None:
        if crc != self._member.CRC:
            raise SourceError(
                f"{self.name} is damaged: its checksum (CRC-32) does not match its content; copy or write it "
                "again."
            )
        self._verified = True


def _check_length(name: str, header: Header, member: zipfile.ZipInfo) -> None:
    """Raise if a member is longer or shorter than its header states.

    zipfile compares the checksum when the last byte is read, so the array must include it.
    """
    expected = header.offset + math.prod(header.shape) * header.dtype.itemsize
    if expected != member.file_size:
        raise SourceError(
            f"{name} is damaged: an array of shape {header.shape} and dtype {header.dtype} needs {expected} "
            f"bytes, but it has {member.file_size}: copy or write it again."
        )


def _read_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Header:
    with archive.open(member) as file:
        return Header(*read_header(file, f"{name}:{member.filename}"), file.tell())


def _member_offset(path: str, member: zipfile.ZipInfo) -> int:
    """Return the offset of a member's content in the file."""
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        _, name, extra = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    return member.header_offset + LOCAL_HEADER.size + int(name) + int(extra)


def _load_array(path: str, key: str, name: str) -> np.ndarray:
    try:
        with np.load(path) as archive:
            return np.asarray(archive[key])
    except MemoryError:
        raise
    except Exception as error:  # as in `open_npz`
        raise SourceError(f"{name} is damaged ({error}): copy or write it again.") from None


def _load_sparse(path: str, name: str, size: int, max_bytes: int | None) -> SparseSource:
    """Return the source of a sparse matrix that SciPy wrote."""
    from scipy import sparse

    subject = f"{name} is a sparse .npz file and must be loaded into memory: it"
    fix = "split it into parts, or write it as HDF5"
    check_memory(size, subject, fix, max_bytes)
    try:
        matrix = sparse.load_npz(path)
    except MemoryError:
        raise
    except Exception as error:  # as in `open_npz`
        raise SourceError(
            f"{name} is not a sparse matrix that SciPy can read ({error}): write it by "
            "scipy.sparse.save_npz."
        ) from None
    flat_shape(name, matrix.shape, matrix.dtype)
    # Conversion to CSR: the pointers of all rows, and a copy of the entries.
    check_memory(2 * size + 16 * sum(matrix.shape), subject, fix, max_bytes)
    source = SparseSource(matrix, name)
    source.path = path
    return source
