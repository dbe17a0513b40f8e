"""`.npy` files: read in blocks from local disk, fetched by ranges of bytes from fsspec addresses."""

from __future__ import annotations

import io
import os
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from eigengame.sources._array_file import ArrayFileSource
from eigengame.sources._base import Source, SourceError, one_line
from eigengame.sources._paths import is_remote, local_file, open_binary
from eigengame.sources._remote_array import RemoteArraySource

MAX_HEADER = 2**16
"""Largest number of bytes of a header. NumPy refuses headers above 10000 bytes."""


def open_npy(path: str | os.PathLike[str], name: str | None = None) -> Source:
    """Return the rows of a `.npy` file.

    Parameters
    ----------
    path : path or address
    name : str, optional
        Defaults to the path.
    """
    found = os.fspath(path)
    remote = is_remote(found)
    with open_binary(found if remote else local_file(found, ".npy files")) as file:
        shape, order, dtype = read_header(file, found)
        offset = file.tell()
    if not remote:
        return ArrayFileSource(found, shape, dtype, offset=offset, order=order, name=name)
    if order == "F" and len(shape) > 1:
        raise SourceError(
            f"{found} is stored column by column and cannot be fetched by rows: save it with "
            "np.ascontiguousarray, or copy it to local disk."
        )
    return RemoteArraySource(found, shape, dtype, offset, name)


def read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], str, np.dtype[Any]]:
    """Return shape, order and dtype of a `.npy` file, and leave it at the first number."""
    try:
        start = _header_bytes(file)
        version = npy_format.read_magic(start)
        read = (
            npy_format.read_array_header_1_0
            if version == (1, 0)
            else npy_format.read_array_header_2_0
        )
        shape, fortran, dtype = read(start)
    except MemoryError:
        raise
    except Exception as error:  # NumPy evaluates the header, which raises errors of many types
        raise SourceError(
            f"{name} is not a complete .npy file ({one_line(error)}): write it by np.save."
        ) from None
    if not all(isinstance(length, int) and length >= 0 for length in shape):
        raise SourceError(f"{name} is damaged: its header describes shape {shape}: copy it again.")
    return shape, "F" if fortran else "C", dtype


def _header_bytes(file: IO[bytes]) -> io.BytesIO:
    """Return the header of a file. It states its own length: a damaged one of gigabytes is not read."""
    start = file.read(npy_format.MAGIC_LEN)
    stated = file.read(2 if start[6:7] == b"\1" else 4)
    length = int.from_bytes(stated, "little")
    if length > MAX_HEADER:
        raise ValueError(f"its header has {length} bytes")
    return io.BytesIO(start + stated + file.read(length))
