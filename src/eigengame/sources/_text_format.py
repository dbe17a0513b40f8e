"""Format of text tables: delimiter, header, columns, and the text itself."""

from __future__ import annotations

import contextlib
import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, cast

import numpy as np

from eigengame.sources._base import SourceError
from eigengame.sources._memory import size_text
from eigengame.sources._paths import open_binary
from eigengame.sources._table_columns import Column
from eigengame.sources._text_fields import is_text
from eigengame.sources._text_header import has_header

SAMPLE_LINES = 64
"""Lines at the beginning from which the format is detected."""

FIELD_BYTES = 64
"""Memory of a field as text, above its characters."""

DELIMITERS = (",", "\t", ";", "|")

BLANKS = " "
"""Delimiter that stands for any run of blanks and tabs."""

UNREADABLE = (OSError, EOFError, zlib.error)
"""Errors from reading a damaged or truncated file, plain or gzipped."""


class Line(NamedTuple):
    """A line of a text table: its number from 1, and its fields."""

    number: int
    fields: list[str]


class TextFormat(NamedTuple):
    """Format of a text table.

    Attributes
    ----------
    delimiter : str
    names : list of str, optional
        Column names, if the table has a header.
    skipped : int
        Lines before the first row.
    sample : list of Line
        First rows.
    longest : int
        Bytes of the longest line among them.
    """

    delimiter: str
    names: list[str] | None
    skipped: int
    sample: list[Line]
    longest: int

    @property
    def width(self) -> int:
        """Number of fields in a row."""
        return len(self.sample[0].fields)

    def label(self, position: int) -> str | int:
        """Return the name of a column, or its number if the table has no header."""
        return position if self.names is None else self.names[position]


@contextlib.contextmanager
def open_text(path: str) -> Iterator[IO[bytes]]:
    """Open a text file for reading bytes, and decompress it if its name ends in .gz."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open_binary(path))
        if path.lower().endswith(".gz"):
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=file)))
        yield file


def detect_format(path: str, header: Any, delimiter: str, limit: int) -> TextFormat:
    """Detect the format of a text table from its first lines.

    Parameters
    ----------
    path : str
    header : bool or "auto"
        Whether the first line holds names; see `has_header`.
    delimiter : str or "auto"
    limit : int
        Largest memory for one line and its fields, in bytes.
    """
    numbers, lines = _first_lines(path, limit)
    if not lines:
        raise SourceError(f"{path} is empty: it has no line with fields.")
    delimiter = _detect_delimiter(lines[0]) if delimiter == "auto" else delimiter
    try:
        fields = [split_line(line, delimiter) for line in lines]
    except csv.Error as error:
        raise SourceError(f"{path} is not a text table ({error}).") from error
    split = [Line(*pair) for pair in zip(numbers, fields, strict=True)]
    named = has_header(path, numbers[0], fields, header)
    if named and len(split) == 1:
        raise SourceError(f"{path} has a header but no rows.")
    for line in split:
        if len(line.fields) != len(split[0].fields):
            raise SourceError(_wrong_length(path, line, len(split[0].fields), delimiter))
    return TextFormat(
        delimiter=delimiter,
        names=[field.strip() for field in split[0].fields] if named else None,
        skipped=split[0].number if named else split[0].number - 1,
        sample=split[1:] if named else split,
        longest=max(len(line.encode()) for line in lines),
    )


def describe_columns(form: TextFormat) -> list[Column]:
    """Return the columns of a table. A column with text in the sample does not hold numbers."""
    columns = []
    for position in range(form.width):
        label = form.label(position)
        text = next((line for line in form.sample if is_text(line.fields[position])), None)
        if text is None:
            columns.append(Column(label, "numbers", np.dtype(np.float64)))
        else:
            content = f"text ({text.fields[position]!r} in line {text.number})"
            columns.append(Column(label, content, None))
    return columns


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line."""
    if delimiter == BLANKS:
        return line.split()
    return next(csv.reader([line], delimiter=delimiter), [""])


def read_lines(path: str, form: TextFormat, row: int, limit: int) -> Iterator[Line]:
    """Yield the lines of the rows from `row` on; raise if one is too long."""
    rows = 0
    with open_text(path) as file:
        for number, raw in enumerate(_raw_lines(file, path, limit), start=1):
            if number <= form.skipped or not raw.strip():
                continue
            if rows >= row:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                yield Line(number, split_line(line, form.delimiter))
            rows += 1


def find_fault(path: str, form: TextFormat, line: Line, positions: Sequence[int]) -> str | None:
    """Return a message if a line has a wrong length, or text at one of the positions."""
    if len(line.fields) != form.width:
        return _wrong_length(path, line, form.width, form.delimiter)
    for position in positions:
        field = line.fields[position]
        if is_text(field):
            return (
                f"{path}: line {line.number} has {field!r} in column {form.label(position)!r}, which is not a "
                "number: fix it, or choose other columns."
            )
    return None


def _wrong_length(path: str, line: Line, width: int, delimiter: str) -> str:
    shown = "blanks" if delimiter == BLANKS else repr(delimiter)
    return (
        f"{path}: line {line.number} has {len(line.fields)} fields, but the first line has {width} (delimiter: "
        f"{shown}): fix the line, or give delimiter=."
    )


def _raw_lines(file: IO[bytes], path: str, limit: int) -> Iterator[bytes]:
    """Yield the lines of a file; raise if a line and its fields need more than `limit` bytes."""
    number = 0
    while raw := file.readline(limit + 1):
        number += 1
        fields = max(raw.count(mark) for mark in (b",", b"\t", b";", b"|", b" "))
        if len(raw) + FIELD_BYTES * fields > limit:
            raise too_long(path, number, limit)
        yield raw


def too_long(path: str, number: int | None, limit: int) -> SourceError:
    """Return the error for a line that needs too much memory."""
    where = "a line" if number is None else f"line {number}"
    return SourceError(
        f"{path}: {where} and its fields need more than the limit of {size_text(limit)}: it is damaged or not a "
        "text table. If such long lines are right, give max_bytes= to as_source (--max-bytes)."
    )


def _first_lines(path: str, limit: int) -> tuple[list[int], list[str]]:
    """Return numbers and texts of the first lines, without empty lines and leading comments.

    The sample ends early if the lines together need more than the limit.
    """
    numbers: list[int] = []
    lines: list[str] = []
    total = 0
    try:
        with open_text(path) as file:
            for number, raw in enumerate(_raw_lines(file, path, limit), start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n")
                if not line.strip() or (not lines and line.lstrip().startswith("#")):
                    continue
                numbers.append(number)
                lines.append(line)
                total += len(line) + FIELD_BYTES * line.count(_detect_delimiter(line))
                if len(lines) == SAMPLE_LINES or (len(lines) > 1 and total > limit // 4):
                    break
    except UNREADABLE as error:
        raise SourceError(
            f"{path} cannot be read ({error}): it is damaged or incomplete."
        ) from error
    return numbers, lines


def _detect_delimiter(line: str) -> str:
    """Return the most frequent candidate in a line, else blanks."""
    counts = [line.count(mark) for mark in DELIMITERS]
    if max(counts):
        return DELIMITERS[counts.index(max(counts))]
    return BLANKS if len(line.split()) > 1 else ","
