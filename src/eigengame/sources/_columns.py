"""Tables: which columns are the features, which one holds weights, and what dtype they share."""

from __future__ import annotations

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


def choose(table: Sequence[Column], columns: Any, weights: Any, name: str) -> Choice:
    """Return the features and the weights of a table, all of them numbers.

    Parameters
    ----------
    table : sequence of Column
    columns : sequence of labels, one label, or None
        The features, in this order; by default every column but the weights.
    weights : label, optional
        The column that says how often each row counts; it is no feature.
    name : str
        Of the table, for messages.
    """
    features, weight = located([column.label for column in table], columns, weights, name)
    for position in features if weight is None else [*features, weight]:
        if table[position].dtype is None:
            raise SourceError(_not_numbers(table, position, name))
    dtypes = [table[position].dtype for position in features]
    return Choice(features, weight, np.result_type(*[one for one in dtypes if one is not None]))


def located(
    labels: Sequence[Hashable], columns: Any, weights: Any, name: str
) -> tuple[list[int], int | None]:
    """Return where the features and the weights stand, by their labels."""
    where: dict[Hashable, list[int]] = {}
    for position, label in enumerate(labels):
        where.setdefault(label, []).append(position)
    weight = None if weights is None else _position(where, weights, name)
    if columns is None:
        features = list(range(len(labels)))
    else:
        one = isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray)
        features = [_position(where, label, name) for label in ([columns] if one else columns)]
    features = [position for position in features if position != weight]
    if not features:
        raise SourceError(f"{name}: no column is left for the features; it has {_listed(labels)}.")
    return features, weight


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


def _position(where: dict[Hashable, list[int]], label: Hashable, name: str) -> int:
    found = where.get(label, [])
    if not found:
        raise SourceError(f"{name} has no column {label!r}: it has {_listed(list(where))}.")
    if len(found) > 1:
        raise SourceError(f"{name} has {len(found)} columns called {label!r}: rename them.")
    return found[0]


def _not_numbers(table: Sequence[Column], position: int, name: str) -> str:
    """Return what is wrong with a column that holds no numbers, and what to ask for instead."""
    column = table[position]
    numeric = [other.label for other in table if other.dtype is not None]
    remedy = (
        f"leave it out, for example by columns={_listed(numeric, brackets=True)}"
        if numeric
        else "turn it into numbers first"
    )
    return f"{name}: column {column.label!r} holds {column.holds}, not numbers: {remedy}."


def _listed(labels: Sequence[Hashable], *, brackets: bool = False) -> str:
    """Return labels for a message, not all of them where they are many."""
    shown = ", ".join(repr(label) for label in labels[:SHOWN])
    if brackets:
        return f"[{shown}{', ...' if len(labels) > SHOWN else ''}]"
    more = len(labels) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
