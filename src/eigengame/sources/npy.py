"""`.npy` files: read in blocks from local disk, fetched by ranges of bytes from fsspec addresses."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._array_file import ArrayFileSource
from eigengame.sources._paths import is_remote, local_file, open_binary
from eigengame.sources._remote_array import RemoteArraySource


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
    npy = np.lib.format
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise SourceError(
            f"{name} is not a complete .npy file ({error}): write it by np.save."
        ) from None
    return shape, "F" if fortran else "C", dtype
