"""Columns of tables: which are features, which one holds weights, and their common dtype."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eigengame.sources._base import Source, SourceError, list_items

MAX_LISTED = 8
"""Number of columns that a message lists."""


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    label : hashable
    content : str
        Description of its content, usually the type in its library.
    dtype : dtype or None
        Dtype of its numbers; None if it does not hold numbers.
    """

    label: Hashable
    content: str
    dtype: np.dtype | None


class ColumnOptions(NamedTuple):
    """Options `columns`, `weights` and `drop` of a table.

    Attributes
    ----------
    columns : sequence of labels, one label, or None
        Features, in this order. Defaults to all columns but the weights, the index and `drop`.
    weights : label, optional
        Column of sample weights. It is not a feature.
    drop : sequence of labels, one label, or None
        Columns that are not features. Cannot be combined with `columns`.

    Notes
    -----
    If all labels are text, columns can also be given by number from 0.
    """

    columns: Any = None
    weights: Any = None
    drop: Any = None


class ColumnChoice(NamedTuple):
    """Positions of the features and of the weights, and the common dtype of the features."""

    features: list[int]
    weights: int | None
    dtype: np.dtype


def choose_columns(
    table: Sequence[Column], options: ColumnOptions, name: str, index: Sequence[int] = ()
) -> ColumnChoice:
    """Return the features and weights of a table; raise if one of them does not hold numbers.

    Parameters
    ----------
    table : sequence of Column
    options : ColumnOptions
    name : str
        Name of the table, for messages.
    index : sequence of int
        Positions of index columns, which are features only if `options.columns` names them.
    """
    features, weight = locate_columns([column.label for column in table], options, name, index)
    for position in features if weight is None else [*features, weight]:
        if table[position].dtype is None:
            raise SourceError(_not_numbers(table, position, name))
    dtypes = [table[position].dtype for position in features]
    common = np.result_type(*[one for one in dtypes if one is not None])
    return ColumnChoice(features, weight, common)


def locate_columns(
    labels: Sequence[Hashable], options: ColumnOptions, name: str, index: Sequence[int] = ()
) -> tuple[list[int], int | None]:
    """Return the positions of the features and of the weights; see `choose_columns`."""
    columns, weights, drop = options
    if columns is not None and drop is not None:
        raise SourceError(
            f"{name}: columns={format_labels(columns)} and drop={format_labels(drop)} were both given: give "
            "the columns to keep, or the columns to leave out."
        )
    weight = None if weights is None else _Labels(labels, name).position(weights)
    dropped = set(column_positions(drop, labels, name))
    if columns is None:
        features = [i for i in range(len(labels)) if i not in dropped and i not in index]
    else:
        features = column_positions(columns, labels, name)
    features = [position for position in features if position != weight]
    if not features:
        unused = [labels[i] for i in index if i != weight and i not in dropped]
        reason = (
            f" besides the pandas index ({list_items(unused)}; columns= can name it)"
            if unused
            else ""
        )
        raise SourceError(
            f"{name}: no column is left for the features{reason}; its columns are {list_items(labels)}."
        )
    return features, weight


def omitted_index(
    labels: Sequence[Hashable], options: ColumnOptions, index: Sequence[int]
) -> list[Hashable]:
    """Return the labels of index columns that are left out although the options do not name them."""
    if options.columns is not None:
        return []
    named = [
        *column_positions(options.drop, labels, ""),
        *column_positions(options.weights, labels, ""),
    ]
    return [labels[position] for position in index if position not in named]


def column_positions(wanted: Any, labels: Sequence[Hashable], name: str) -> list[int]:
    """Return the positions of one or several columns; an empty list for None."""
    if wanted is None:
        return []
    known = _Labels(labels, name)
    return [known.position(label) for label in ([wanted] if _is_one(wanted) else wanted)]


def nan_dtype(dtype: np.dtype) -> np.dtype:
    """Return a dtype that can hold the same numbers and NaN."""
    if dtype.kind == "f":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


def check_weights(weights: np.ndarray, name: str, row: int) -> np.ndarray:
    """Return the weights of the rows from `row` on; raise if one is negative or not finite."""
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise SourceError(
            f"{name}: the weight of row {row + wrong[0]} is {weights[wrong[0]]}: give finite numbers of at "
            "least 0."
        )
    return weights


def describe_labels(labels: Sequence[Hashable]) -> str:
    """Return labels as text for a fingerprint, shortened to a digest if it is long."""
    text = ", ".join(map(str, labels))
    if len(text) <= 200:
        return text
    return f"{len(labels)} columns, {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def digest_of_sample(source: Source) -> str:
    """Return a digest of a few rows of a source with random access."""
    n = source.shape[0] or 0
    digest = hashlib.sha256()
    for row in np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int)):
        block = next(iter(source.blocks(int(row), 1)))
        digest.update(np.ascontiguousarray(block.values).tobytes())
        if block.weights is not None:
            digest.update(np.ascontiguousarray(block.weights).tobytes())
    return digest.hexdigest()[:16]


class _Labels:
    """Lookup of columns by label or, if all labels are text, by number."""

    def __init__(self, labels: Sequence[Hashable], name: str) -> None:
        self.labels, self.name = labels, name
        self.positions: dict[Hashable, list[int]] = {}
        for position, label in enumerate(labels):
            self.positions.setdefault(label, []).append(position)
        self.all_text = all(isinstance(label, str) for label in labels)
        self.any_decimal = self.all_text and any(str(label).isdecimal() for label in labels)

    def position(self, label: Any) -> int:
        """Return the position of a column."""
        label = label.item() if isinstance(label, np.generic) else label
        found = self.positions.get(label, [])
        if isinstance(label, bool):  # True equals 1 and False equals 0
            found = [position for position in found if self.labels[position] is label]
        elif not found and self.all_text:
            found = self._by_number(label)
        if not found:
            near = difflib.get_close_matches(str(label), map(str, self.labels), n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise SourceError(
                f"{self.name} has no column {label!r}{hint}: its columns are "
                f"{list_items(list(self.positions))}."
            )
        if len(found) > 1:
            raise SourceError(
                f"{self.name} has {len(found)} columns called {label!r}: rename them."
            )
        return found[0]

    def _by_number(self, label: Any) -> list[int]:
        """Return the position that a number means among labels that are text.

        Decimal text, as from a command line, is a position only if no label is decimal. An integer that is
        the position of one column and the name of another is ambiguous and raises.
        """
        if isinstance(label, str):
            valid = label.isdecimal() and not self.any_decimal and int(label) < len(self.labels)
            return [int(label)] if valid else []
        if not isinstance(label, int):
            return []
        named = self.positions.get(str(label), [])
        if not 0 <= label < len(self.labels):
            return named
        if named and named != [label]:
            raise SourceError(
                f"{self.name}: column {label} is the name of one column and the position of another "
                f"({self.labels[label]!r}): give the name as text, {str(label)!r} or "
                f"{self.labels[label]!r}."
            )
        return [label]


def _not_numbers(table: Sequence[Column], position: int, name: str) -> str:
    """Return the message for a column that does not hold numbers."""
    column = table[position]
    numeric = [other.label for other in table if other.dtype is not None]
    fix = (
        f"leave it out by drop={[column.label]!r} (--drop), or choose others, for example by "
        f"columns={format_labels(numeric)}"
        if numeric
        else "convert it to numbers first"
    )
    return f"{name}: column {column.label!r} holds {column.content}, not numbers: {fix}."


def _is_one(wanted: Any) -> bool:
    """Return whether an option is one label, not a sequence of them."""
    return isinstance(wanted, str) or not isinstance(wanted, Sequence | np.ndarray)


def format_labels(wanted: Any) -> str:
    """Return an option of one or several labels for a message, shortened if it is long."""
    if _is_one(wanted):
        return repr(wanted)
    few = ", ".join(repr(label) for label in wanted[:MAX_LISTED])
    return f"[{few}{', ...' if len(wanted) > MAX_LISTED else ''}]"
