"""Standard deviations of features, from sums that are updated block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation.stored_values import (
    column_sums,
    per_column,
    per_row,
    row_weights,
    stored,
)
from eigengame.sources import Block

ORIGIN_ROWS = 16
"""Rows whose median is the origin."""


class DeviationSums(NamedTuple):
    """Sums of the rows seen so far, relative to an origin.

    The origin is the median of the first rows. It is close to the mean, which avoids cancellation, and the
    sums of constant features are exactly 0.

    Attributes
    ----------
    origin : array of shape (d,)
    weight : float
        Weight of the rows.
    stored : array of shape (d,) or ()
        Weight of the rows that store the feature, which are all rows if they are dense.
    sums, squares : arrays of shape (d,)
        Weighted sums of stored values minus the origin, and of their squares.
    """

    origin: np.ndarray
    weight: float
    stored: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    def deviation(self) -> np.ndarray:
        """Return the standard deviation of each feature (d,), with ddof=0."""
        # Entries that are not stored are zeros: minus the origin, relative to it.
        absent, total = self.weight - self.stored, np.where(self.weight > 0, self.weight, 1)
        mean = (self.sums - absent * self.origin) / total
        return np.sqrt(np.maximum((self.squares + absent * self.origin**2) / total - mean**2, 0))


def add(sums: DeviationSums | None, block: Block) -> DeviationSums:
    """Return the sums after one more block; None means no rows so far."""
    now = _start(block) if sums is None else sums
    values, weights = block.values, row_weights(block)
    away = stored(values) - per_column(values, now.origin)
    weight = per_row(values, weights)
    return DeviationSums(
        now.origin,
        now.weight + float(weights.sum()),
        now.stored + (column_sums(values, weight) if issparse(values) else weights.sum()),
        now.sums + column_sums(values, weight * away),
        now.squares + column_sums(values, weight * away**2),
    )


def _start(first: Block) -> DeviationSums:
    """Return the sums of no rows, with an origin from the first block."""
    values = first.values if first.weights is None else first.values[first.weights > 0]
    rows, d = values[:ORIGIN_ROWS], first.values.shape[1]
    dense = rows.toarray() if issparse(rows) else np.asarray(rows)
    origin = np.median(dense.astype(np.float64), axis=0) if len(dense) else np.zeros(d)
    count = np.zeros(d) if issparse(first.values) else np.zeros(())
    return DeviationSums(origin, 0.0, count, np.zeros(d), np.zeros(d))
