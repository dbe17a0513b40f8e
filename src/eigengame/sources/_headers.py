"""Whether the first line of a text table holds the names of the columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._fields import is_missing, is_number, is_text, is_whole

ENOUGH = 3
"""Rows needed below the first line before their way of writing numbers is evidence."""

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
    if below and any(is_number(below[0][position]) for position in texts):
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
    them decide (an order stands in for the second where the first holds), one makes it unclear.
    """
    rows, many = len(columns[0]), len(labels) > 1
    ordered = many and labels in (sorted(labels), sorted(labels, reverse=True))
    if all(_is_fractional(column) for column in columns):
        return True if ordered and rows >= ENOUGH else None
    values = [[float(field) for field in column if is_number(field)] for column in columns]
    outside = [
        _is_outside(label, column, far=not many)
        for label, column in zip(labels, values, strict=True)
    ]
    apart = all(outside) and (not many or (2 / (rows + 1)) ** len(labels) < UNLIKELY)
    step = _step(labels)
    steps = [
        _step([float(field) for field in row])
        for row in zip(*columns, strict=True)
        if all(is_number(field) for field in row)
    ]
    stepped = step is not None and steps.count(step) <= COMMON * rows
    if stepped and apart:
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


def _is_outside(label: float, column: list[float], *, far: bool) -> bool:
    """Return whether a number lies outside the range of a column; `far`, by more than that range.

    A column that rises or falls from its first number to the last proves nothing: the number above may
    be its beginning.
    """
    if not column:
        return False
    low, high = min(column), max(column)
    beyond = max(low - label, label - high)
    if far:
        return len(column) >= ENOUGH and beyond > high - low
    whole = [label, *column]
    steps = [b - a for a, b in itertools.pairwise(whole)]
    runs = len(column) > 1 and (all(one > 0 for one in steps) or all(one < 0 for one in steps))
    return beyond > 0 and not runs
