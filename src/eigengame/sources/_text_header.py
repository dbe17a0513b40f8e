"""Whether the first line of a text table holds the names of the columns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._text_fields import is_missing, is_number, is_text, is_whole

ENOUGH = 8
"""Rows needed below the first line before their way of writing numbers is evidence."""

FEW = 3
"""Rows needed below the first line before their range is evidence, if there are several columns."""

LONG = 8
"""Labels with a constant step that need no other evidence."""

UNLIKELY = 0.01
"""A first row that stands apart from the rest counts as evidence where chance makes it this rare."""


COMMON = 0.1
"""A step between the columns that more of the rows than this have does not tell names from rows."""


def has_names(path: str, number: int, lines: Sequence[list[str]], header: Any) -> bool:
    """Return whether the first line holds names; raise where this cannot be decided.

    Parameters
    ----------
    path : str
    number : int
        Number of the first line in the file, from 1.
    lines : sequence of lists of str
        Fields of the first lines.
    header : bool or "auto"
        What the user said.
    """
    if isinstance(header, bool):
        return header
    if not (isinstance(header, str) and header == "auto"):
        raise SourceError(f"{path}: header={header!r} is not valid: give True, False or 'auto'.")
    found = _found(lines[0], [line for line in lines[1:] if len(line) == len(lines[0])])
    if found is None:
        shown = ",".join(lines[0][:4]) + (",..." if len(lines[0]) > 4 else "")
        raise SourceError(
            f"{path}: line {number} ({shown}) may hold column names or the first row. Pass header=True "
            "(--header) if it holds names, header=False (--no-header) if it is a row."
        )
    return found


def _found(first: list[str], below: list[list[str]]) -> bool | None:
    """Return whether the first line holds names, None where it is unclear."""
    numeric = [position for position, field in enumerate(first) if is_number(field)]
    texts = [position for position, field in enumerate(first) if is_text(field)]
    if texts and not numeric:
        return True
    # Marks such as "?" or "-" above a number stand for a missing value, not for a name.
    words = [position for position in texts if re.search(r"\w", first[position])]
    if below and any(is_number(below[0][position]) for position in words):
        return True
    others = set(range(len(first))) - set(numeric) - set(texts)
    if others - {0} or not all(is_whole(first[position]) for position in numeric):
        return False  # a missing value, or a fraction: names written by a program have neither
    labels = [int(first[position]) for position in numeric]
    if others and labels == list(range(len(labels))):
        return True  # pandas writes a frame without names like this, its index first
    if not below or not labels or len(set(labels)) < len(labels):
        return False
    columns = [[line[position] for line in below] for position in numeric]
    return _numbers_are_names(labels, columns, texts=bool(texts))


def _numbers_are_names(labels: list[int], columns: list[list[str]], *, texts: bool) -> bool | None:
    """Return whether distinct whole numbers are names of the columns of numbers below them.

    Three facts speak for names: all columns below are written as fractions; the labels have a constant
    step, as years do, which few rows below have; all labels lie outside the range of their columns. Two of
    them decide (an order stands in for the second where the first holds), and so does the second alone
    for many labels. One fact makes it unclear.
    """
    rows, many = len(columns[0]), len(labels) > 1
    ordered = many and labels in (sorted(labels), sorted(labels, reverse=True))
    if all(_is_fractional(column) for column in columns):
        return True if ordered and rows >= ENOUGH else None
    values = [[float(field) for field in column if is_number(field)] for column in columns]
    pairs = list(zip(labels, values, strict=True))
    outside = [_is_outside(label, column) for label, column in pairs]
    apart = all(outside) and many and (2 / (rows + 1)) ** len(labels) < UNLIKELY
    if rows >= (FEW if many else ENOUGH):
        apart = apart or all(_is_far(label, column) for label, column in pairs)
    step = _step(labels)
    steps = [
        _step([float(field) for field in row])
        for row in zip(*columns, strict=True)
        if all(is_number(field) for field in row)
    ]
    stepped = step is not None and steps.count(step) <= COMMON * rows
    if stepped and (apart or (len(labels) >= LONG and step not in steps)):
        return True
    mostly_outside = 2 * sum(outside) > len(outside)
    return None if stepped or apart or (texts and mostly_outside) else False


def _is_fractional(column: list[str]) -> bool:
    """Return whether all numbers of a column are written with a decimal point or an exponent."""
    held = [field for field in column if not is_missing(field)]
    return bool(held) and all(is_number(field) and not is_whole(field) for field in held)


def _step(numbers: Sequence[float]) -> float | None:
    """Return the constant step of three or more numbers; None where there is none, or it is 0."""
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return (steps.pop() or None) if len(numbers) > 2 and len(steps) == 1 else None


def _is_outside(label: float, column: list[float]) -> bool:
    """Return whether a number lies outside the range of a column.

    A column that begins on the side of the number, as one that rises or falls, proves nothing unless the
    number is far away: it may be the beginning of the column.
    """
    if not column or min(column) <= label <= max(column):
        return False
    middle = sorted(column)[len(column) // 2]
    early = column[: max(2, len(column) // 4)]
    below = label < middle
    trend = all(one <= middle if below else one >= middle for one in early)
    return not trend or _is_far(label, column)


def _is_far(label: float, column: list[float]) -> bool:
    """Return whether a number is further from all numbers of a column than these are from each other."""
    return bool(column) and min(abs(label - one) for one in column) > max(column) - min(column)
