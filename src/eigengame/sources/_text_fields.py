"""Fields of a text table: numbers, integers, missing values and text."""

from __future__ import annotations

import re

MISSING = frozenset(
    {"", "NA", "N/A", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "Null", "null", "None"}
)
"""Fields that are read as NaN."""


def is_number(field: str) -> bool:
    """Return whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def is_integer(field: str) -> bool:
    """Return whether a field is a number without a decimal point or an exponent."""
    return re.fullmatch(r"[+-]?[0-9]+", field.strip()) is not None


def is_missing(field: str) -> bool:
    """Return whether a field is read as NaN."""
    return field.strip() in MISSING


def is_text(field: str) -> bool:
    """Return whether a field is neither a number nor missing."""
    return not is_number(field) and not is_missing(field)
