"""Index columns: what pandas (or R) writes beside the data, which is not a feature."""

from __future__ import annotations

import itertools
import os
import re
import sys
import warnings
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from eigengame.sources._base import ColumnWarning
from eigengame.sources._text_fields import is_number, is_text, is_whole

if TYPE_CHECKING:
    import pyarrow as pa

RESERVED = re.compile(r"__index_level_[0-9]+__|__null_dask_index__")
"""Names that pandas and Dask give to an index without a name, where they write it as a column."""

UNNAMED = "Unnamed: 0"
"""The name that pandas gives to a first column without one, when it reads text."""

COUNTED = 8
"""Rows from which a first column of 0, 1, 2, ... without a name is reported."""


def is_reserved(label: Hashable) -> bool:
    """Return whether a column has a name that only an index has."""
    return isinstance(label, str) and RESERVED.fullmatch(label) is not None


def index_of_schema(schema: pa.Schema) -> list[int]:
    """Return the positions of the index columns of an Arrow schema.

    They are named by the metadata of pandas, or known by their own names where this metadata was lost.
    """
    stored = _stored_index(schema)
    known = index_of_labels(schema.names, fractions=len(schema) > 0 and _fractions(schema.types[0]))
    return [i for i, label in enumerate(schema.names) if label in stored or i in known]


def index_of_labels(labels: Sequence[Hashable], *, fractions: bool) -> list[int]:
    """Return the positions of the columns whose names only an index has.

    Parameters
    ----------
    labels : sequence of labels
    fractions : bool
        Whether the first column holds fractions, which an index that is called "Unnamed: 0" does not.
    """
    return [
        position
        for position, label in enumerate(labels)
        if is_reserved(label) or (position == 0 and label == UNNAMED and not fractions)
    ]


def is_index_name(name: str) -> bool:
    """Return whether the first column of a text table is without a name."""
    return name in ("", UNNAMED)


def is_index(fields: Sequence[str]) -> bool | None:
    """Return whether a first column without a name is an index; None where it is unclear.

    Text and dates are, and so are whole numbers that are all distinct (of a frame that was filtered or
    shuffled), and numbers that only rise or only fall (such as times).
    """
    if any(is_text(field) for field in fields):
        return True
    if not all(is_number(field) for field in fields):
        return None
    numbers = [float(field) for field in fields]
    if all(is_whole(field) for field in fields) and len(set(numbers)) == len(numbers):
        return True
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    return True if all(s > 0 for s in steps) or all(s < 0 for s in steps) else None


def counts_rows(fields: Sequence[str]) -> bool:
    """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ..."""
    if len(fields) < COUNTED or fields[0].strip() not in ("0", "1"):
        return False
    return all(
        is_whole(field) and int(field) == number
        for number, field in enumerate(fields, start=int(fields[0]))
    )


def warn_left_out(name: str, labels: Sequence[Hashable]) -> None:
    """Tell the user which index columns were left out of a table, if any."""
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
    """Warn about the columns of a table, at the line outside of this package that opened it."""
    package = os.path.dirname(os.path.dirname(__file__))
    frame, level = sys._getframe().f_back, 2
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ColumnWarning, stacklevel=level)


def _stored_index(schema: pa.Schema) -> set[Any]:
    """Return the names of the index columns in the metadata of pandas; those of a range are not stored."""
    try:
        about = schema.pandas_metadata
    except ValueError:  # not JSON
        return set()
    names = about.get("index_columns") if isinstance(about, dict) else None
    return {one for one in names if isinstance(one, str)} if isinstance(names, list) else set()


def _fractions(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds fractions, or lists."""
    import pyarrow.types as types

    return bool(types.is_floating(kind) or types.is_decimal(kind) or types.is_nested(kind))
