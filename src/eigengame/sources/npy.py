"""NumPy's own files: `.npy` by memory map, or by ranges of bytes where fsspec reaches it."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._memory_map import MemoryMapSource
from eigengame.sources._remote_array import RemoteArraySource, opened
from eigengame.sources._stored_arrays import is_remote, local


class NpySource(MemoryMapSource):
    """Rows of a `.npy` file, mapped: blocks are read-only views.

    Parameters
    ----------
    path : path
    name : str, optional
        The path where not given.
    """

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        path = local(path, ".npy files")
        with open(path, "rb") as file:
            shape, order, dtype = header(file, path)
            offset = file.tell()
        super().__init__(path, shape, dtype, offset=offset, order=order, name=name)


def open_npy(path: str | os.PathLike[str], name: str | None = None) -> Source:
    """Return the rows of a `.npy` file: mapped here, fetched by ranges from an fsspec address."""
    found = os.fspath(path)
    if not is_remote(found):
        return NpySource(found, name)
    with opened(found) as file:
        shape, order, dtype = header(file, found)
        offset = file.tell()
    if order == "F" and len(shape) > 1:
        raise SourceError(
            f"{found} lies column by column, which cannot be fetched by rows: save it with "
            "np.ascontiguousarray, or copy it here first."
        )
    return RemoteArraySource(found, shape, dtype, offset, name)


def header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], str, np.dtype[Any]]:
    """Return shape, order and dtype of a `.npy` file, which is then at its first number."""
    form = np.lib.format
    try:
        version = form.read_magic(file)
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise SourceError(f"{name} is no whole .npy file ({error}): write it by np.save.") from None
    return shape, "F" if fortran else "C", dtype
