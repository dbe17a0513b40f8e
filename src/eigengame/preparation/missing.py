"""Missing values: refused, replaced by the mean of their column, or skipped with their row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation._base import BadValue, PreparationStep, TrainingData
from eigengame.preparation.stored_values import (
    column_sums,
    per_column,
    per_row,
    row_sums,
    row_weights,
    stored,
    with_stored,
)
from eigengame.sources import Block, SourceError

POLICIES = ("raise", "mean", "skip")


@dataclass(frozen=True, eq=False)
class Missing(PreparationStep):
    """Handle NaN. Infinity is not a missing value and always raises.

    Parameters
    ----------
    policy : {"raise", "mean", "skip"}
        Raise; replace it by the mean of the column's other values; or set the row and its weight to 0.
    means : array of shape (d,), optional
        Learnt means of the columns.
    """

    kind: ClassVar[str] = "missing"

    policy: str = "raise"
    means: np.ndarray | None = None

    @property
    def rounds(self) -> bool:
        """Whether new numbers are computed: means are rounded to the precision of the block."""
        return self.policy == "mean"

    def learn(self, source: TrainingData) -> Missing:
        """Return the step with the means of the values that are present, from one pass."""
        if self.policy != "mean":
            return self
        d = source.shape[1]
        start = (np.zeros(d), np.zeros(d))
        totals, counted = source.fold(_add, start, "missing='mean'")
        empty = np.flatnonzero(counted <= 0)
        if len(empty):
            names = source.feature_names
            few = [str(i) if names is None else f"{i} ({names[i]})" for i in empty[:10]]
            more = f" and {len(empty) - 10} more" if len(empty) > 10 else ""
            raise SourceError(
                f"{source.name}: columns without any value have no mean: {', '.join(few)}{more}. Leave them "
                "out by columns=, which names the columns to keep."
            )
        return replace(self, means=totals / counted)

    def apply(self, block: Block) -> Block:
        """Return the block without missing values."""
        missing = _find_missing(block)
        if missing is None:
            return block
        if self.policy == "raise":
            raise BadValue(
                block,
                missing,
                "which is missing: give missing='mean' or 'skip' (--missing), or leave out the row.",
            )
        values, numbers = block.values, stored(block.values)
        if self.policy == "mean":
            assert self.means is not None
            fill = np.broadcast_to(per_column(values, self.means), numbers.shape)
            filled = np.where(missing, fill.astype(numbers.dtype), numbers)
            return Block(with_stored(values, filled), block.weights)
        complete = row_sums(values, missing) == 0
        zeroed = np.where(per_row(values, complete), numbers, numbers.dtype.type(0))
        return Block(with_stored(values, zeroed), row_weights(block) * complete)


def _find_missing(block: Block) -> np.ndarray | None:
    """Return a mask of the missing stored values, or None if there are none; raise for infinity."""
    numbers = stored(block.values)
    if numbers.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        if np.isfinite(numbers.sum()):  # then all values are finite, which is the usual case
            return None
    infinite = np.isinf(numbers)
    if infinite.any():
        raise BadValue(block, infinite, "which is not a missing value: remove or replace it.")
    missing = np.isnan(numbers)
    return missing if missing.any() else None


def _add(carry: tuple[np.ndarray, np.ndarray], block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Add one block to the weighted sums and weights of the values present, each of shape (d,)."""
    totals, counted = carry
    values, weights, missing = block.values, row_weights(block), _find_missing(block)
    numbers, weight = stored(values), per_row(values, weights)
    if missing is None:
        return totals + column_sums(values, weight * numbers), counted + weights.sum()
    totals = totals + column_sums(values, weight * np.where(missing, 0, numbers))
    if not issparse(values):
        # Without a subtraction, the weight of a column without any value is exactly 0.
        return totals, counted + column_sums(values, weight * ~missing)
    return totals, counted + weights.sum() - column_sums(values, weight * missing)
