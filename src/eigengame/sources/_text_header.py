"""Detection of a header line with column names in a text table."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._text_fields import is_integer, is_missing, is_number, is_text

MIN_ROWS = 8
"""Rows needed below the first line to compare its number format, or its range for a single column."""

MIN_ROWS_SEVERAL_COLUMNS = 3
"""Rows needed below the first line to compare its range, if there are several columns."""

MANY_LABELS = 8
"""Number of labels with a constant step that suffices as evidence."""

MAX_CHANCE = 0.01
"""Largest probability at which a first row outside the range of the others counts as evidence."""

MAX_SHARE = 0.1
"""Largest share of rows that may have the same constant step as the labels."""


def has_header(path: str, number: int, lines: Sequence[list[str]], header: Any) -> bool:
    """Return whether the first line holds column names; raise if it is unclear.

    Parameters
    ----------
    path : str
    number : int
        Number of the first line in the file, from 1.
    lines : sequence of lists of str
        Fields of the first lines.
    header : bool or "auto"
        Option of the user.
    """
    if isinstance(header, bool):
        return header
    if not (isinstance(header, str) and header == "auto"):
        raise SourceError(f"{path}: header={header!r} is not valid: give True, False or 'auto'.")
    detected = _detect(lines[0], [line for line in lines[1:] if len(line) == len(lines[0])])
    if detected is None:
        shown = ",".join(lines[0][:4]) + (",..." if len(lines[0]) > 4 else "")
        raise SourceError(
            f"{path}: line {number} ({shown}) may hold column names or the first row. Pass header=True "
            "(--header) if it holds names, header=False (--no-header) if it is a row."
        )
    return detected


def _detect(first: list[str], below: list[list[str]]) -> bool | None:
    """Return whether the first line holds names; None if it is unclear."""
    numeric = [position for position, field in enumerate(first) if is_number(field)]
    texts = [position for position, field in enumerate(first) if is_text(field)]
    if texts and not numeric:
        return True
    # Marks without letters, for example "?" or "-", stand for a missing value, not for a name.
    words = [position for position in texts if re.search(r"\w", first[position])]
    if below and any(is_number(below[0][position]) for position in words):
        return True
    others = set(range(len(first))) - set(numeric) - set(texts)
    if others - {0} or not all(is_integer(first[position]) for position in numeric):
        return False  # names written by a program are neither missing nor fractions
    labels = [int(first[position]) for position in numeric]
    if others and labels == list(range(len(labels))):
        return True  # pandas writes a frame without column names like this, its index first
    if not below or not labels or len(set(labels)) < len(labels):
        return False
    columns = [[line[position] for line in below] for position in numeric]
    return _are_names(labels, columns, texts=bool(texts))


def _are_names(labels: list[int], columns: list[list[str]], *, texts: bool) -> bool | None:
    """Return whether distinct integers are names of the numeric columns below; None if unclear.

    There are three kinds of evidence: (1) all numbers below are written as fractions; (2) the labels have a
    constant step, as years do, and few rows below have the same step; (3) all labels are outside the range
    of their columns. Two of them decide. So does (1) with labels in order, and (2) alone for many labels. A
    single one makes it unclear.
    """
    rows, several = len(columns[0]), len(labels) > 1
    ordered = several and labels in (sorted(labels), sorted(labels, reverse=True))
    if all(_is_fractional(column) for column in columns):
        return True if ordered and rows >= MIN_ROWS else None
    values = [[float(field) for field in column if is_number(field)] for column in columns]
    pairs = list(zip(labels, values, strict=True))
    outside = [_is_outside(label, column) for label, column in pairs]
    apart = all(outside) and several and (2 / (rows + 1)) ** len(labels) < MAX_CHANCE
    if rows >= (MIN_ROWS_SEVERAL_COLUMNS if several else MIN_ROWS):
        apart = apart or all(_is_far(label, column) for label, column in pairs)
    step = _constant_step(labels)
    row_steps = [
        _constant_step([float(field) for field in row])
        for row in zip(*columns, strict=True)
        if all(is_number(field) for field in row)
    ]
    stepped = step is not None and row_steps.count(step) <= MAX_SHARE * rows
    if stepped and (apart or (len(labels) >= MANY_LABELS and step not in row_steps)):
        return True
    mostly_outside = 2 * sum(outside) > len(outside)
    return None if stepped or apart or (texts and mostly_outside) else False


def _is_fractional(column: list[str]) -> bool:
    """Return whether all numbers of a column are written with a decimal point or an exponent."""
    present = [field for field in column if not is_missing(field)]
    return bool(present) and all(is_number(field) and not is_integer(field) for field in present)


def _constant_step(numbers: Sequence[float]) -> float | None:
    """Return the constant nonzero step of three or more numbers, else None."""
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return (steps.pop() or None) if len(numbers) > 2 and len(steps) == 1 else None


def _is_outside(label: float, column: list[float]) -> bool:
    """Return whether a number is outside the range of a column.

    A column with a trend may begin with the number, so its range proves nothing unless the number is far
    away.
    """
    if not column or min(column) <= label <= max(column):
        return False
    middle = sorted(column)[len(column) // 2]
    early = column[: max(2, len(column) // 4)]
    below = label < middle
    trend = all(one <= middle if below else one >= middle for one in early)
    return not trend or _is_far(label, column)


def _is_far(label: float, column: list[float]) -> bool:
    """Return whether a number is further from a column than the range of the column is wide."""
    return bool(column) and min(abs(label - one) for one in column) > max(column) - min(column)
