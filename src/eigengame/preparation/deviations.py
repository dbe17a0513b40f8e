"""Standard deviations of features, row after row: sums about an origin that lies among the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation.stored_values import by_column, by_row, cells, column_sums, weights_of
from eigengame.sources import Block

FEW = 16
"""Rows whose median is the origin."""


class Spread(NamedTuple):
    """What is known of the spread of the rows so far.

    The origin is a median of first rows. So it is near the mean, which keeps digits, and features that
    are always the same have sums of exactly 0.

    Attributes
    ----------
    origin : array of shape (d,)
    weight : float
        Of the rows.
    stored : array of shape (d,) or ()
        Weight of the rows that store the feature: of all where rows are dense.
    sums, squares : arrays of shape (d,)
        Of what is stored, less the origin.
    """

    origin: np.ndarray
    weight: float
    stored: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    def deviation(self) -> np.ndarray:
        """Return the standard deviation of each feature (d,), with no degree of freedom taken off."""
        return deviation(*self)


def no_rows(first: Block) -> Spread:
    """Return the spread of no rows, about an origin among these."""
    rows = first.values[:FEW] if first.weights is None else first.values[first.weights > 0][:FEW]
    dense, d = rows.toarray() if issparse(rows) else np.asarray(rows), first.values.shape[1]
    origin = np.median(dense.astype(np.float64), axis=0) if len(dense) else np.zeros(d)
    stored = np.zeros(d) if issparse(first.values) else np.zeros(())
    return Spread(origin, 0.0, stored, np.zeros(d), np.zeros(d))


def add(spread: Spread | None, block: Block) -> Spread:
    """Return the spread with one more block."""
    now = no_rows(block) if spread is None else spread
    values, weights = block.values, weights_of(block)
    away = cells(values) - by_column(values, now.origin)
    weight = by_row(values, weights)
    return Spread(
        now.origin,
        now.weight + float(weights.sum()),
        now.stored + (column_sums(values, weight) if issparse(values) else weights.sum()),
        now.sums + column_sums(values, weight * away),
        now.squares + column_sums(values, weight * away**2),
    )


def deviation(origin: Any, weight: Any, stored: Any, sums: Any, squares: Any) -> np.ndarray:
    """Return standard deviations; zeros that are not stored lie at minus the origin."""
    absent, total = weight - stored, np.where(weight > 0, weight, 1)
    mean = (sums - absent * origin) / total
    return np.sqrt(np.maximum((squares + absent * origin**2) / total - mean**2, 0))
