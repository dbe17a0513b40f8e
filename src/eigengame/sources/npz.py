"""Archives of arrays: `.npz` of NumPy, mapped where it is not compressed, and SciPy's sparse `.npz`."""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._memory_map import MemoryMapSource
from eigengame.sources._stored_arrays import Array, chosen, flat_shape, image_shape, local, stamp
from eigengame.sources.arrays import ArraySource
from eigengame.sources.npy import header
from eigengame.sources.sparse import SparseSource

SPARSE = {"data", "format", "shape"}
"""What `scipy.sparse.save_npz` always writes."""

SMALL = 2**26
"""Members of up to so many bytes are checked when they are opened."""

Head = tuple[tuple[int, ...], str, np.dtype[Any], int]
"""Shape, order and dtype of a member, and where its numbers begin in it."""

LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Before each member of a zip file: a mark, and how long its name and its extra field are."""


def open_npz(
    path: str | os.PathLike[str], key: str | None = None, name: str | None = None
) -> Source:
    """Return the rows of one array of an `.npz` file, or of the sparse matrix in it.

    Arrays of `np.savez` are mapped. Those of `np.savez_compressed`, and sparse matrices, can only be read
    whole: they are refused where memory does not hold them.

    Parameters
    ----------
    path : path
        On local disk.
    key : str, optional
        Which array; not needed where only one has rows of numbers.
    name : str, optional
    """
    path = local(path, ".npz files")
    name = name or path
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                member.filename.removesuffix(".npy"): member
                for member in archive.infolist()
                if member.filename.endswith(".npy")
            }
            heads = {key: _head(archive, member, name) for key, member in members.items()}
    except (SourceError, MemoryError):
        raise
    except Exception as error:  # a damaged archive makes the module raise many kinds
        raise SourceError(
            f"{name} is not a valid .npz file ({error}): copy or write it again."
        ) from None
    found = {key: Array(shape, dtype) for key, (shape, _, dtype, _) in heads.items()}
    if set(found) >= SPARSE:
        if key is not None:
            raise SourceError(f"{name} is one sparse matrix, without keys: leave out key={key!r}.")
        for part in found:
            _refuse_other_length(f"{name}:{part}", heads[part], members[part])
        return _sparse(path, name, sum(member.file_size for member in members.values()))
    key = chosen(name, found, key)
    shape, _, dtype, _ = heads[key]
    whole = f"{name}:{key}"
    flat_shape(whole, shape, dtype)
    member = members[key]
    _refuse_other_length(whole, heads[key], member)
    if member.compress_type == zipfile.ZIP_STORED:
        begin = _offset(path, member)
        return StoredSource(path, heads[key], begin, member, name=whole, key=key)
    refuse_unless_held(
        whole, member.file_size, "savez instead of savez_compressed lets it be mapped"
    )
    return LoadedSource(_loaded(path, key, whole), path, key, whole)


class StoredSource(MemoryMapSource):
    """Rows of an uncompressed member, mapped: its CRC-32 is checked by the first pass, before the last rows.

    Parameters
    ----------
    path : str
    head : tuple
        As `_head` returns it.
    begin : int
        Where the bytes of the member begin in the file.
    member : ZipInfo
    name, key : str
    """

    def __init__(
        self, path: str, head: Head, begin: int, member: zipfile.ZipInfo, *, name: str, key: str
    ) -> None:
        shape, order, dtype, skipped = head
        super().__init__(
            path, shape, dtype, offset=begin + skipped, order=order, name=name, key=key
        )
        self._member, self._begin, self._checked = member, begin, False
        if member.file_size <= SMALL:
            self._check()

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`; rows out of order need the whole member to be checked before."""
        if not self._checked:
            self._check()
        return super().read(begin, end)

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return some columns of these rows; checked as in `read`."""
        if not self._checked:
            self._check()
        return super().read_columns(begin, end, first, last)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`; a damaged member is refused before the last."""
        if self._checked or not self._row_bytes:
            yield from super().blocks(start, size)
            return
        rows = self._array.shape[0]
        crc, at = 0, self._begin
        for begin in range(start, rows, size):
            end = min(begin + size, rows)
            self._announce(begin, end)
            upto = self._offset + end * self._row_bytes
            crc, at = self._crc(at, upto, crc), upto
            if end == rows:
                self._refuse_unless(crc)
            yield Block(super().read(begin, end))

    def _check(self) -> None:
        """Read the whole member, and refuse it where it is damaged."""
        self._refuse_unless(self._crc(self._begin, self._begin + self._member.file_size, 0))

    def _crc(self, begin: int, end: int, crc: int) -> int:
        """Return the checksum after some bytes of the file more."""
        with memoryview(self._map) as view:
            for first in range(begin, end, 2**22):
                crc = zlib.crc32(view[first : min(first + 2**22, end)], crc)
        return crc

    def _refuse_unless(self, crc: int) -> None:
        if crc != self._member.CRC:
            raise SourceError(
                f"{self.name} is damaged: its checksum (CRC-32) does not match its content; copy or write it "
                "again."
            )
        self._checked = True


class LoadedSource(ArraySource):
    """Rows of an array that could only be read whole.

    Parameters
    ----------
    data : array of shape (n, ...)
        Axes after the first are flattened.
    path : str
        The file it came from, and `key` its name there.
    key : str
    name : str
    """

    def __init__(self, data: np.ndarray, path: str, key: str, name: str) -> None:
        super().__init__(data.reshape(len(data), -1), name)
        self.image_shape = image_shape(data.shape)
        self.path, self.key = path, key

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, a digest of a few rows, and the file's size and time."""
        return super().fingerprint() | stamp(self.path, self.key)


class LoadedSparse(SparseSource):
    """Rows of a sparse matrix that came from a file.

    Parameters
    ----------
    data : SciPy sparse matrix
    path : str
    name : str
    """

    def __init__(self, data: Any, path: str, name: str) -> None:
        super().__init__(data, name)
        self.path = path

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, digests of entries, and the file's size and time."""
        return super().fingerprint() | stamp(self.path)


def refuse_unless_held(name: str, needed: int, remedy: str) -> None:
    """Raise where something that must be read whole is larger than free memory."""
    from eigengame._system.memory import free_memory

    there = free_memory()
    if there is not None and needed > there:
        raise SourceError(
            f"{name} is compressed and must be read whole: it takes {needed / 2**30:.2f} GiB, but "
            f"{there / 2**30:.2f} GiB is free; {remedy}."
        )


def _refuse_other_length(name: str, head: Head, member: zipfile.ZipInfo) -> None:
    """Refuse a member that is longer or shorter than its header says.

    The checksum of a member is compared when its last byte is read, so that all of them must be.
    """
    shape, _, dtype, skipped = head
    expected = skipped + math.prod(shape) * dtype.itemsize
    if expected != member.file_size:
        raise SourceError(
            f"{name} is damaged: an array of shape {shape} and dtype {dtype} takes {expected} bytes, but it "
            f"has {member.file_size}; copy or write it again."
        )


def _head(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Head:
    """Return shape, order and dtype of a member, and where its numbers begin in it."""
    with archive.open(member) as file:
        return *header(file, f"{name}:{member.filename}"), file.tell()


def _offset(path: str, member: zipfile.ZipInfo) -> int:
    """Return where the bytes of a member begin in the file."""
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        _, name, extra = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    return member.header_offset + LOCAL_HEADER.size + int(name) + int(extra)


def _loaded(path: str, key: str, name: str) -> np.ndarray:
    """Return one array, read whole."""
    try:
        with np.load(path) as archive:
            return np.asarray(archive[key])
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise SourceError(f"{name} is damaged ({error}): copy or write it again.") from None


def _sparse(path: str, name: str, needed: int) -> Source:
    """Return the sparse matrix of a file that SciPy wrote."""
    from scipy import sparse

    refuse_unless_held(name, needed, "give it in parts, or as HDF5")
    try:
        matrix = sparse.load_npz(path)
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise SourceError(
            f"{name} is no sparse matrix that SciPy can read ({error}): write it by "
            "scipy.sparse.save_npz."
        ) from None
    flat_shape(name, matrix.shape, matrix.dtype)
    return LoadedSparse(matrix, path, name)
