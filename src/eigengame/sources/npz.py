"""Archives of arrays: `.npz` of NumPy, mapped where it is not compressed, and SciPy's sparse `.npz`."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._files import Array, chosen, flat_shape, image_shape, local, stamp
from eigengame.sources._mapped import MappedSource
from eigengame.sources.arrays import ArraySource
from eigengame.sources.npy import header
from eigengame.sources.sparse import SparseSource

SPARSE = {"data", "format", "shape"}
"""What `scipy.sparse.save_npz` always writes."""

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
    except (zipfile.BadZipFile, RuntimeError, OSError, zlib.error) as error:
        raise SourceError(
            f"{name} is no whole .npz file ({error}): copy or write it again."
        ) from None
    found = {key: Array(shape, dtype) for key, (shape, _, dtype, _) in heads.items()}
    if set(found) >= SPARSE:
        if key is not None:
            raise SourceError(f"{name} is one sparse matrix, without keys: leave out key={key!r}.")
        return _sparse(path, name, sum(member.file_size for member in members.values()))
    key = chosen(name, found, key)
    shape, order, dtype, skipped = heads[key]
    whole = f"{name}:{key}"
    flat_shape(whole, shape, dtype)
    member = members[key]
    if member.compress_type == zipfile.ZIP_STORED:
        offset = _offset(path, member) + skipped
        return MappedSource(path, shape, dtype, offset=offset, order=order, name=whole, key=key)
    refuse_unless_held(
        whole, member.file_size, "savez instead of savez_compressed lets it be mapped"
    )
    return LoadedSource(_loaded(path, key, whole), path, key, whole)


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
    from eigengame.plan import free_memory

    there = free_memory()
    if there is not None and needed > there:
        raise SourceError(
            f"{name} is compressed and must be read whole: it takes {needed / 2**30:.2f} GiB, but "
            f"{there / 2**30:.2f} GiB is free; {remedy}."
        )


def _head(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str
) -> tuple[tuple[int, ...], str, np.dtype[Any], int]:
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
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError) as error:
        raise SourceError(f"{name} is damaged ({error}): copy or write it again.") from None


def _sparse(path: str, name: str, needed: int) -> Source:
    """Return the sparse matrix of a file that SciPy wrote."""
    from scipy import sparse

    refuse_unless_held(name, needed, "give it in parts, or as HDF5")
    try:
        matrix = sparse.load_npz(path)
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, OSError) as error:
        raise SourceError(
            f"{name} is no sparse matrix that SciPy can read ({error}): write it by "
            "scipy.sparse.save_npz."
        ) from None
    flat_shape(name, matrix.shape, matrix.dtype)
    return LoadedSparse(matrix, path, name)
