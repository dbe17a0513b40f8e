"""Tables: which columns are the features, which one holds weights, and what dtype they share."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eigengame.sources._base import Source, SourceError

SHOWN = 8
"""Columns that a message names before it says how many more there are."""


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    label : hashable
        What it is called there.
    holds : str
        What it holds, as its library says it.
    dtype : dtype or None
        Of its numbers; None where it has none.
    """

    label: Hashable
    holds: str
    dtype: np.dtype | None


class Choice(NamedTuple):
    """Columns by position: the features, the weights, and the dtype that the features share."""

    features: list[int]
    weights: int | None
    dtype: np.dtype


class ColumnOptions(NamedTuple):
    """Columns as the user gave them; see `choose`."""

    columns: Any = None
    weights: Any = None
    drop: Any = None


def choose(
    table: Sequence[Column],
    columns: Any,
    weights: Any,
    name: str,
    *,
    drop: Any = None,
    index: Sequence[int] = (),
) -> Choice:
    """Return the features and the weights of a table, all of them numbers.

    Parameters
    ----------
    table : sequence of Column
    columns : sequence of labels, one label, or None
        The features, in this order; by default every column but the weights, the index and `drop`.
    weights : label, optional
        The column that says how often each row counts; it is no feature.
    name : str
        Of the table, for messages.
    drop : sequence of labels, one label, or None
        Columns that are not features. Cannot be combined with `columns`.
    index : sequence of int
        Positions of columns that are features only if `columns` names them.

    Notes
    -----
    Columns whose labels are all text can also be given by number from 0.
    """
    labels = [column.label for column in table]
    features, weight = located(labels, columns, weights, name, drop=drop, index=index)
    for position in features if weight is None else [*features, weight]:
        if table[position].dtype is None:
            raise SourceError(_not_numbers(table, position, name))
    dtypes = [table[position].dtype for position in features]
    return Choice(features, weight, np.result_type(*[one for one in dtypes if one is not None]))


def located(
    labels: Sequence[Hashable],
    columns: Any,
    weights: Any,
    name: str,
    *,
    drop: Any = None,
    index: Sequence[int] = (),
) -> tuple[list[int], int | None]:
    """Return the positions of the features and of the weights, by their labels; see `choose`."""
    if columns is not None and drop is not None:
        raise SourceError(
            f"{name}: columns={shown(columns)} and drop={shown(drop)} were both given: give the columns "
            "to keep, or those to leave out."
        )
    weight = None if weights is None else _Labels(labels, name).position(weights)
    dropped = set(positions_of(drop, labels, name))
    if columns is None:
        features = [i for i in range(len(labels)) if i not in dropped and i not in index]
    else:
        features = positions_of(columns, labels, name)
    features = [position for position in features if position != weight]
    if not features:
        beside = [labels[i] for i in index if i != weight and i not in dropped]
        reason = (
            f" beside the pandas index ({_listed(beside)}; columns= can name it)" if beside else ""
        )
        raise SourceError(
            f"{name}: no column is left for the features{reason}; it has {_listed(labels)}."
        )
    return features, weight


def left_out(
    labels: Sequence[Hashable], columns: Any, weights: Any, drop: Any, index: Sequence[int]
) -> list[Hashable]:
    """Return the labels of the index columns that were left out without the user naming them."""
    if columns is not None:
        return []
    named = [*positions_of(drop, labels, ""), *positions_of(weights, labels, "")]
    return [labels[position] for position in index if position not in named]


def positions_of(wanted: Any, labels: Sequence[Hashable], name: str) -> list[int]:
    """Return the positions of columns by their labels: several, one, or none for None."""
    if wanted is None:
        return []
    one = isinstance(wanted, str) or not isinstance(wanted, Sequence | np.ndarray)
    known = _Labels(labels, name)
    return [known.position(label) for label in ([wanted] if one else wanted)]


def with_room_for_missing(dtype: np.dtype) -> np.dtype:
    """Return a dtype that holds the same numbers, and NaN."""
    if dtype.kind == "f":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


def checked_weights(weights: np.ndarray, name: str, row: int) -> np.ndarray:
    """Return the weights of the rows from `row` on, refusing one that is no weight."""
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise SourceError(
            f"{name}: the weight of row {row + wrong[0]} is {weights[wrong[0]]}: give finite numbers of at "
            "least 0."
        )
    return weights


def described(labels: Sequence[Hashable]) -> str:
    """Return labels as one short text that tells them from others, for fingerprints."""
    text = ", ".join(map(str, labels))
    if len(text) <= 200:
        return text
    return f"{len(labels)} columns, {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def digest_of_rows(source: Source) -> str:
    """Return a digest of a few rows of a source that can be read from anywhere."""
    n = source.shape[0] or 0
    digest = hashlib.sha256()
    for row in np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int)):
        block = next(iter(source.blocks(int(row), 1)))
        digest.update(np.ascontiguousarray(block.values).tobytes())
        if block.weights is not None:
            digest.update(np.ascontiguousarray(block.weights).tobytes())
    return digest.hexdigest()[:16]


class _Labels:
    """Labels of a table, to be found by name or, where all are text, by number."""

    def __init__(self, labels: Sequence[Hashable], name: str) -> None:
        self.labels, self.name = labels, name
        self.where: dict[Hashable, list[int]] = {}
        for position, label in enumerate(labels):
            self.where.setdefault(label, []).append(position)
        self.texts = all(isinstance(label, str) for label in labels)
        self.decimals = self.texts and any(str(label).isdecimal() for label in labels)

    def position(self, label: Any) -> int:
        """Return the position of a column by its label, or by its number."""
        label = label.item() if isinstance(label, np.generic) else label
        found = self.where.get(label, [])
        if isinstance(label, bool):  # which equals 0 or 1
            found = [position for position in found if self.labels[position] is label]
        elif not found and self.texts:
            found = self._by_number(label)
        if not found:
            near = difflib.get_close_matches(str(label), map(str, self.labels), n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise SourceError(
                f"{self.name} has no column {label!r}{hint}: it has {_listed(list(self.where))}."
            )
        if len(found) > 1:
            raise SourceError(
                f"{self.name} has {len(found)} columns called {label!r}: rename them."
            )
        return found[0]

    def _by_number(self, label: Any) -> list[int]:
        """Return the position that a number means among labels that are text.

        Text, such as a command line gives, is a position only if no label is a number. A whole number that
        is the position of one column and the name of another is refused.
        """
        if isinstance(label, str):
            placed = label.isdecimal() and not self.decimals and int(label) < len(self.labels)
            return [int(label)] if placed else []
        if not isinstance(label, int):
            return []
        named = self.where.get(str(label), [])
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
    """Return what is wrong with a column that holds no numbers, and what to ask for instead."""
    column = table[position]
    numeric = [other.label for other in table if other.dtype is not None]
    remedy = (
        f"leave it out by drop={[column.label]!r} (--drop), or choose others, for example by "
        f"columns={_listed(numeric, brackets=True)}"
        if numeric
        else "turn it into numbers first"
    )
    return f"{name}: column {column.label!r} holds {column.holds}, not numbers: {remedy}."


def shown(wanted: Any) -> str:
    """Return what was given as columns, for a message; not all of it where it is long."""
    if isinstance(wanted, str) or not isinstance(wanted, Sequence | np.ndarray):
        return repr(wanted)
    return _listed(list(wanted), brackets=True)


def _listed(labels: Sequence[Hashable], *, brackets: bool = False) -> str:
    """Return labels for a message, not all of them where they are many."""
    few = ", ".join(repr(label) for label in labels[:SHOWN])
    if brackets:
        return f"[{few}{', ...' if len(labels) > SHOWN else ''}]"
    more = len(labels) - SHOWN
    return f"{few} and {more} more" if more > 0 else few
