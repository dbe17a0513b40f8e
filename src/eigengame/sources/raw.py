"""Raw binary: numbers one after another, with nothing that says what they are."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._files import is_remote, local
from eigengame.sources._mapped import MappedSource
from eigengame.sources._remote import RemoteRows, file_system


class RawSource(MappedSource):
    """Rows of a raw binary file, mapped: blocks are read-only views.

    Parameters
    ----------
    path : path
    columns : int
        Features of each row.
    dtype : dtype
        Of the numbers; ">f4" and the like for another byte order.
    offset : int
        Bytes before the first number.
    order : {"C", "F"}
        Whether the numbers of a row or those of a column lie together.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: int | None = None,
        dtype: Any = "float32",
        offset: int = 0,
        order: str = "C",
        name: str | None = None,
    ) -> None:
        path = local(path, "raw files")
        name = name or path
        if order not in ("C", "F"):
            raise SourceError(
                f"{name}: order={order!r}: give 'C' (rows together) or 'F' (columns)."
            )
        shape = raw_shape(name, os.stat(path).st_size, columns, dtype, offset)
        super().__init__(path, shape, dtype, offset=offset, order=order, name=name)


def open_raw(
    path: str | os.PathLike[str],
    columns: int | None = None,
    dtype: Any = "float32",
    offset: int = 0,
    order: str = "C",
    name: str | None = None,
) -> Source:
    """Return the rows of a raw file: mapped here, fetched by ranges from an fsspec address.

    The parameters are those of `RawSource`.
    """
    found = os.fspath(path)
    if not is_remote(found):
        return RawSource(found, columns, dtype, offset, order, name)
    if order != "C":
        raise SourceError(
            f"{found}: order={order!r}: an address is fetched by rows, so copy the file first."
        )
    files, inside = file_system(found)
    try:
        size = int(files.size(inside))
    except OSError as error:
        raise SourceError(f"{found} cannot be opened ({error}): check the address.") from None
    return RemoteRows(found, raw_shape(found, size, columns, dtype, offset), dtype, offset, name)


def raw_shape(
    name: str, size: int, columns: int | None, dtype: Any, offset: int
) -> tuple[int, int]:
    """Return the shape of so many bytes, or say what is missing or left over."""
    if columns is None:
        raise SourceError(
            f"{name} is raw numbers, and nothing in it says how many make a row: give columns= "
            "(--raw-columns), and dtype= (--raw-dtype) where they are not float32."
        )
    if columns < 1 or offset < 0:
        raise SourceError(
            f"{name}: columns={columns}, offset={offset}: give at least 1 and at least 0."
        )
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise SourceError(
            f"{name}: dtype={dtype!r}: give one such as 'float32' or '>i2'."
        ) from None
    width = columns * kind.itemsize
    rows, left = divmod(size - offset, width)
    if size < offset or left:
        raise SourceError(
            f"{name} has {size} bytes: after offset={offset} that is {max(rows, 0)} rows of {columns} x "
            f"{kind} ({width} bytes) with {left if size >= offset else 0} bytes left over. It is truncated, "
            "or columns, dtype or offset are others."
        )
    return rows, columns
