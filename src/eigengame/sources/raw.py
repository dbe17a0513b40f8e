"""Raw binary: numbers one after another, with nothing that says what they are."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from eigengame.sources._base import Source, SourceError, UnknownOption
from eigengame.sources._memory_map import MemoryMapSource
from eigengame.sources._remote_array import RemoteArraySource, file_system
from eigengame.sources._stored_arrays import is_remote, local

SNIFFED = 2**12
"""Bytes at the beginning of a file that say whether it is text."""


class RawSource(MemoryMapSource):
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
        _refuse_text(name, path, dtype, offset)
        shape = raw_shape(name, os.stat(path).st_size, columns, dtype, offset)
        super().__init__(path, shape, dtype, offset=offset, order=order, name=name)


def open_raw(
    path: str | os.PathLike[str],
    columns: Any = None,
    dtype: Any = "float32",
    offset: int = 0,
    order: str = "C",
    name: str | None = None,
    **options: Any,
) -> Source:
    """Return the rows of a raw file: mapped here, fetched by ranges from an fsspec address.

    The parameters are those of `RawSource`. A file whose beginning is text is read as a text table if no
    option of a raw file is given; `options`, and `columns` as a list, are then those of `CsvSource`.
    """
    found = os.fspath(path)
    plain = not isinstance(columns, int) and (dtype, offset, order) == ("float32", 0, "C")
    if plain and is_text(_beginning(found, 0)):
        from eigengame.sources.csv import CsvSource

        return CsvSource(found, columns=columns, name=name, **options)
    if options:
        raise UnknownOption(
            f"{found} is raw binary, which has no {', '.join(options)}: that option does not belong to "
            "this kind of data."
        )
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
    _refuse_text(found, found, dtype, offset)
    return RemoteArraySource(
        found, raw_shape(found, size, columns, dtype, offset), dtype, offset, name
    )


def is_text(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are printable text, in UTF-8 or plain ASCII."""
    try:
        text = beginning.decode()
    except UnicodeDecodeError as error:
        # The last character may be cut off.
        if error.start < len(beginning) - 4:
            return False
        text = beginning[: error.start].decode()
    return bool(text) and all(letter.isprintable() or letter.isspace() for letter in text)


def _beginning(path: str, offset: int) -> bytes:
    """Return some bytes of a file from an offset on."""
    if not is_remote(path):
        with open(path, "rb") as file:
            file.seek(max(offset, 0))
            return file.read(SNIFFED)
    files, inside = file_system(path)
    try:
        return bytes(files.cat_file(inside, start=max(offset, 0), end=max(offset, 0) + SNIFFED))
    except OSError as error:
        raise SourceError(f"{path} cannot be opened ({error}): check the address.") from None


def _refuse_text(name: str, path: str, dtype: Any, offset: int) -> None:
    """Raise if the numbers of a file are text. Single bytes may be anything, so they are not checked."""
    try:
        single = np.dtype(dtype).itemsize == 1
    except TypeError:
        return  # refused by `raw_shape`
    if not single and is_text(_beginning(path, offset)):
        raise SourceError(
            f"{name} is text, not raw binary numbers: leave out columns= (--raw-columns), dtype= "
            "(--raw-dtype), offset= and order= to read it as a text table, or rename it to .txt or .csv."
        )


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
