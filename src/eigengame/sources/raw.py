"""Raw binary files: numbers without a header."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from eigengame.sources._array_file import ArrayFileSource
from eigengame.sources._base import Source, SourceError, UnknownOption
from eigengame.sources._paths import file_system, is_remote, local_file
from eigengame.sources._remote_array import RemoteArraySource

SNIFFED_BYTES = 2**12
"""Bytes that are examined to decide whether a file is text."""


def open_raw(
    path: str | os.PathLike[str],
    columns: Any = None,
    dtype: Any = "float32",
    offset: int = 0,
    order: str = "C",
    name: str | None = None,
    **options: Any,
) -> Source:
    """Return the rows of a raw file: read in blocks, or fetched by ranges from an fsspec address.

    Parameters
    ----------
    path : path or address
    columns : int
        Number of features in each row.
    dtype : dtype
        Dtype of the numbers, for example ">f4" for big-endian floats.
    offset : int
        Bytes before the first number.
    order : {"C", "F"}
        Whether the numbers of a row or of a column are contiguous.
    name : str, optional
        Defaults to the path.
    **options
        Options of `CsvSource`, for a file that is text.

    Notes
    -----
    A file that begins with text is read as a text table, unless an option of a raw file is given. `columns`
    is then that of `CsvSource`.
    """
    found = os.fspath(path)
    remote = is_remote(found)
    plain = not isinstance(columns, int) and (dtype, offset, order) == ("float32", 0, "C")
    if plain and is_text(_first_bytes(found, 0)):
        from eigengame.sources.csv import CsvSource

        return CsvSource(found, columns=columns, name=name, **options)
    if options:
        raise UnknownOption(
            f"{found} is raw binary, which has no {', '.join(options)}: that option does not belong to "
            "this kind of data."
        )
    if order not in ("C", "F"):
        raise SourceError(f"{found}: order={order!r}: give 'C' (rows together) or 'F' (columns).")
    if remote and order != "C":
        raise SourceError(
            f"{found}: order={order!r}: an address is fetched by rows, so copy the file first."
        )
    shown = name or found
    size = _remote_size(found) if remote else os.stat(local_file(found, "raw files")).st_size
    _refuse_text(shown, found, dtype, offset)
    shape = _shape_of(shown, size, columns, dtype, offset)
    if remote:
        return RemoteArraySource(found, shape, dtype, offset, name)
    return ArrayFileSource(found, shape, dtype, offset=offset, order=order, name=name)


def is_text(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are printable UTF-8 text."""
    try:
        text = beginning.decode()
    except UnicodeDecodeError as error:
        # The last character may be cut off.
        if error.start < len(beginning) - 4:
            return False
        text = beginning[: error.start].decode()
    return bool(text) and all(letter.isprintable() or letter.isspace() for letter in text)


def _first_bytes(path: str, offset: int) -> bytes:
    """Return the bytes to examine, starting at an offset."""
    begin = max(offset, 0)
    if not is_remote(path):
        with open(path, "rb") as file:
            file.seek(begin)
            return file.read(SNIFFED_BYTES)
    files, inside = file_system(path)
    try:
        return bytes(files.cat_file(inside, start=begin, end=begin + SNIFFED_BYTES))
    except OSError as error:
        raise SourceError(f"{path} cannot be opened ({error}): check the address.") from None


def _remote_size(address: str) -> int:
    files, inside = file_system(address)
    try:
        return int(files.size(inside))
    except OSError as error:
        raise SourceError(f"{address} cannot be opened ({error}): check the address.") from None


def _refuse_text(name: str, path: str, dtype: Any, offset: int) -> None:
    """Raise if a file is text. Data of single bytes may look like text and is not checked."""
    try:
        single = np.dtype(dtype).itemsize == 1
    except TypeError:
        return  # refused by `_shape_of`
    if not single and is_text(_first_bytes(path, offset)):
        raise SourceError(
            f"{name} is text, not raw binary numbers: leave out columns= (--raw-columns), dtype= "
            "(--raw-dtype), offset= and order= to read it as a text table, or rename it to .txt or .csv."
        )


def _shape_of(
    name: str, size: int, columns: int | None, dtype: Any, offset: int
) -> tuple[int, int]:
    """Return the number of rows and columns in `size` bytes; raise if bytes are missing or left over."""
    if columns is None:
        raise SourceError(
            f"{name} is raw binary, which does not state the number of columns: give columns= "
            "(--raw-columns), and dtype= (--raw-dtype) if the numbers are not float32."
        )
    if columns < 1 or offset < 0:
        raise SourceError(
            f"{name}: columns={columns}, offset={offset}: give at least 1 and at least 0."
        )
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise SourceError(
            f"{name}: dtype={dtype!r} is unknown: give, for example, 'float32' or '>i2'."
        ) from None
    row_bytes = columns * kind.itemsize
    rows, left = divmod(size - offset, row_bytes)
    if size < offset or left:
        raise SourceError(
            f"{name} has {size} bytes: after offset={offset} these are {max(rows, 0)} rows of {columns} x "
            f"{kind} ({row_bytes} bytes) with {left if size >= offset else 0} bytes left over. It is "
            "truncated, or columns, dtype or offset are wrong."
        )
    return rows, columns
