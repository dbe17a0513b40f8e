"""Text tables: how one is written, and its bytes without what stands in the way of a parser."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, cast

import numpy as np

from eigengame.sources._base import SourceError
from eigengame.sources._paths import opened
from eigengame.sources._table_columns import Column
from eigengame.sources._text_fields import MISSING as MISSING
from eigengame.sources._text_fields import is_text
from eigengame.sources._text_header import has_names

LOOKED = 64
"""Lines at the beginning that tell the delimiter, the names and which columns hold text."""

DELIMITERS = (",", "\t", ";", "|")

SPACES = " "
"""The delimiter that stands for any run of blanks and tabs."""

UNREADABLE = (OSError, EOFError, zlib.error)
"""Errors of reading a text that is damaged or cut off, plain or gzipped."""


class Line(NamedTuple):
    """A line of a text, its number from 1, and its fields."""

    number: int
    fields: list[str]


class Form(NamedTuple):
    """How a text table is written.

    Attributes
    ----------
    delimiter : str
    names : list of str, optional
        Of the columns, where the first line has them.
    skipped : int
        Lines before the first row.
    first : list of Line
        A few rows.
    longest : int
        Bytes of the longest line among them.
    """

    delimiter: str
    names: list[str] | None
    skipped: int
    first: list[Line]
    longest: int

    @property
    def width(self) -> int:
        """Fields of a row."""
        return len(self.first[0].fields)


@contextlib.contextmanager
def text(path: str) -> Iterator[IO[bytes]]:
    """Give the bytes of a text, gunzipped where its name ends in .gz."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(opened(path))
        if path.lower().endswith(".gz"):
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=file)))
        yield file


def look(path: str, header: Any, delimiter: str) -> Form:
    """Return how a text table is written, from its first lines.

    Parameters
    ----------
    path : str
    header : bool or "auto"
        Whether the first line holds names; see `has_names`.
    delimiter : str or "auto"
    """
    numbers, lines = _first_lines(path)
    if not lines:
        raise SourceError(f"{path} is empty: it has no line with fields.")
    mark = _delimiter(lines[0]) if delimiter == "auto" else delimiter
    try:
        fields = [fields_of(line, mark) for line in lines]
    except csv.Error as error:
        raise SourceError(f"{path} is no table of text ({error}).") from error
    split = [Line(*pair) for pair in zip(numbers, fields, strict=True)]
    named = has_names(path, numbers[0], fields, header)
    if named and len(split) == 1:
        raise SourceError(f"{path} has a header but no rows.")
    for line in split:
        if len(line.fields) != len(split[0].fields):
            raise SourceError(ragged(path, line, len(split[0].fields), mark))
    return Form(
        delimiter=mark,
        names=[field.strip() for field in split[0].fields] if named else None,
        skipped=split[0].number if named else split[0].number - 1,
        first=split[1:] if named else split,
        longest=max(len(line.encode()) for line in lines),
    )


def columns_of(form: Form) -> list[Column]:
    """Return the columns by name, or by number from 0: of numbers, unless a field looked at is text."""
    columns = []
    for position in range(form.width):
        label = position if form.names is None else form.names[position]
        odd = next((line for line in form.first if is_text(line.fields[position])), None)
        if odd is None:
            columns.append(Column(label, "numbers", np.dtype(np.float64)))
        else:
            seen = f"text ({odd.fields[position]!r} in line {odd.number})"
            columns.append(Column(label, seen, None))
    return columns


def fields_of(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line."""
    if delimiter == SPACES:
        return line.split()
    return next(csv.reader([line], delimiter=delimiter), [""])


def ragged(path: str, line: Line, width: int, delimiter: str) -> str:
    """Return what is wrong with a line of another length."""
    between = "blanks" if delimiter == SPACES else repr(delimiter)
    return (
        f"{path}: line {line.number} has {len(line.fields)} fields, but the first has {width} (between them "
        f"{between}): mend the line, or give delimiter=."
    )


def lines_from(path: str, form: Form, row: int) -> Iterator[Line]:
    """Give the lines of the rows from `row` on."""
    rows = 0
    with text(path) as file:
        for number, raw in enumerate(file, start=1):
            if number <= form.skipped or not raw.strip():
                continue
            if rows >= row:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                yield Line(number, fields_of(line, form.delimiter))
            rows += 1


def fault(path: str, form: Form, line: Line, positions: Sequence[int]) -> str | None:
    """Return what is wrong with a line, of which the fields at some positions must be numbers."""
    if len(line.fields) != form.width:
        return ragged(path, line, form.width, form.delimiter)
    for position in positions:
        field = line.fields[position]
        if is_text(field):
            label = position if form.names is None else form.names[position]
            return (
                f"{path}: line {line.number} has {field!r} in column {label!r}, which is no number: mend it, "
                "or choose other columns."
            )
    return None


class SingleBlanks(io.RawIOBase):
    """A text in which runs of blanks and tabs are single blanks, and lines neither begin nor end with one.

    Parameters
    ----------
    file : binary file
        At the beginning of a line.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._rest, self._ready = file, b"", b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how far."""
        while not self._ready:
            chunk = self._file.read(2**20)
            if not chunk and not self._rest:
                return 0
            whole, end, rest = (self._rest + chunk).rpartition(b"\n")
            lines, self._rest = (whole + end, rest) if chunk else (self._rest, b"")
            single = re.sub(rb"[ \t]+", b" ", lines)
            self._ready = re.sub(rb"(?m)^ | (?=\r?$)", b"", single)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


def _first_lines(path: str) -> tuple[list[int], list[str]]:
    """Return numbers and texts of the first lines; not the empty ones, nor comments before the table."""
    numbers: list[int] = []
    lines: list[str] = []
    try:
        with text(path) as file:
            for number, raw in enumerate(file, start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n")
                if not line.strip() or (not lines and line.lstrip().startswith("#")):
                    continue
                numbers.append(number)
                lines.append(line)
                if len(lines) == LOOKED:
                    break
    except UNREADABLE as error:
        raise SourceError(
            f"{path} cannot be read ({error}): it is damaged or not whole."
        ) from error
    return numbers, lines


def _delimiter(line: str) -> str:
    """Return what stands between the fields of a line: the commonest candidate, else blanks."""
    counts = [line.count(mark) for mark in DELIMITERS]
    if max(counts):
        return DELIMITERS[counts.index(max(counts))]
    return SPACES if len(line.split()) > 1 else ","
