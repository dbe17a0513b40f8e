"""Index columns of tables: row labels written by pandas or R, which are not features."""

from __future__ import annotations

import itertools
import os
import re
import sys
import warnings
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from eigengame.sources._base import ColumnWarning
from eigengame.sources._text_fields import is_integer, is_number, is_text

if TYPE_CHECKING:
    import pyarrow as pa

RESERVED = re.compile(r"__index_level_[0-9]+__|__null_dask_index__")
"""Column names that pandas and Dask write for an index without a name."""

UNNAMED = "Unnamed: 0"
"""Column name that pandas gives to an unnamed first column of a text table."""

MIN_COUNTING_ROWS = 8
"""Number of rows from which an unnamed first column 0, 1, 2, ... causes a warning."""


def schema_index_positions(schema: pa.Schema) -> list[int]:
    """Return the positions of the index columns of an Arrow schema.

    They are listed in the metadata of pandas, or recognised by name if the metadata was lost.
    """
    stored = _pandas_index(schema)
    fractions = len(schema) > 0 and _is_fractional(schema.types[0])
    known = index_positions(schema.names, fractions=fractions)
    return [i for i, label in enumerate(schema.names) if label in stored or i in known]


def index_positions(labels: Sequence[Hashable], *, fractions: bool) -> list[int]:
    """Return the positions of columns with names that only an index has.

    Parameters
    ----------
    labels : sequence of labels
    fractions : bool
        Whether the first column holds fractions. If so, it is not an index although it is called
        "Unnamed: 0".
    """
    return [
        position
        for position, label in enumerate(labels)
        if (isinstance(label, str) and RESERVED.fullmatch(label))
        or (position == 0 and label == UNNAMED and not fractions)
    ]


def is_unnamed(name: str) -> bool:
    """Return whether the first column of a text table has no name."""
    return name in ("", UNNAMED)


def is_index(fields: Sequence[str]) -> bool | None:
    """Return whether an unnamed first column is an index; None if it is unclear.

    Text and dates are an index. So are distinct integers (of a frame that was filtered or shuffled) and
    numbers that only rise or only fall (for example times).
    """
    if any(is_text(field) for field in fields):
        return True
    if not all(is_number(field) for field in fields):
        return None
    numbers = [float(field) for field in fields]
    if all(is_integer(field) for field in fields) and len(set(numbers)) == len(numbers):
        return True
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    return True if all(s > 0 for s in steps) or all(s < 0 for s in steps) else None


def counts_rows(fields: Sequence[str]) -> bool:
    """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ..."""
    if len(fields) < MIN_COUNTING_ROWS or fields[0].strip() not in ("0", "1"):
        return False
    return all(
        is_integer(field) and int(field) == number
        for number, field in enumerate(fields, start=int(fields[0]))
    )


def warn_omitted(name: str, labels: Sequence[Hashable]) -> None:
    """Warn about index columns that were left out of a table, if any."""
    if labels:
        shown = ", ".join(map(repr, labels))
        what = (
            f"column {shown} is an index" if len(labels) == 1 else f"columns {shown} are an index"
        )
        warn(
            f"{name}: {what}, not a feature, and left out. To use it as a feature, name all features by "
            "columns=."
        )


def warn(message: str) -> None:
    """Issue a `ColumnWarning` at the line outside this package that opened the table."""
    package = os.path.dirname(os.path.dirname(__file__))
    frame, level = sys._getframe().f_back, 2
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ColumnWarning, stacklevel=level)


def _pandas_index(schema: pa.Schema) -> set[Any]:
    """Return the index columns in the metadata of pandas. A range index is not stored as a column."""
    try:
        about = schema.pandas_metadata
    except ValueError:  # not JSON
        return set()
    names = about.get("index_columns") if isinstance(about, dict) else None
    return {one for one in names if isinstance(one, str)} if isinstance(names, list) else set()


def _is_fractional(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds fractions or lists."""
    import pyarrow.types as types

    return bool(types.is_floating(kind) or types.is_decimal(kind) or types.is_nested(kind))
