"""Missing values: refused, filled with the column's mean, or their rows passed over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation._base import BadValue, Step, TrainingData
from eigengame.preparation.stored_values import (
    by_column,
    by_row,
    cells,
    column_sums,
    row_sums,
    weights_of,
    with_cells,
)
from eigengame.sources import Block, SourceError

POLICIES = ("raise", "mean", "skip")


@dataclass(frozen=True, eq=False)
class Missing(Step):
    """Deal with NaN. Infinity is no missing value: it is refused under every policy.

    Parameters
    ----------
    policy : {"raise", "mean", "skip"}
        Refuse it; put the mean of the column's other values; or give its row weight 0, and zeros.
    means : array of shape (d,), optional
        What is put: learnt.
    """

    kind: ClassVar[str] = "missing"

    policy: str = "raise"
    means: np.ndarray | None = None

    @property
    def rounds(self) -> bool:
        """Whether new numbers are computed: means are, which are rounded to the block's precision."""
        return self.policy == "mean"

    def learn(self, source: TrainingData) -> Missing:
        """Return the step with the means of what is there, where they are to be put: one pass."""
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
                f"{source.name}: columns without any value, which have no mean: {', '.join(few)}{more}. Leave "
                "them out by columns=, which names the columns to keep."
            )
        return replace(self, means=totals / counted)

    def apply(self, block: Block) -> Block:
        """Return the block with no missing value."""
        gone = _missing(block)
        if gone is None:
            return block
        if self.policy == "raise":
            raise BadValue(
                block,
                gone,
                "which is missing: give missing='mean' or 'skip', or leave out the row.",
            )
        values, numbers = block.values, cells(block.values)
        if self.policy == "mean":
            assert self.means is not None
            fill = np.broadcast_to(by_column(values, self.means), numbers.shape)
            filled = np.where(gone, fill.astype(numbers.dtype), numbers)
            return Block(with_cells(values, filled), block.weights)
        whole = row_sums(values, gone) == 0
        zeroed = np.where(by_row(values, whole), numbers, numbers.dtype.type(0))
        return Block(with_cells(values, zeroed), weights_of(block) * whole)


def _missing(block: Block) -> np.ndarray | None:
    """Return which stored numbers are missing, or None where none is; raise where one is infinite."""
    numbers = cells(block.values)
    if numbers.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        if np.isfinite(numbers.sum()):  # then all are: the usual case, by one read
            return None
    infinite = np.isinf(numbers)
    if infinite.any():
        raise BadValue(block, infinite, "which no policy takes for missing: remove or replace it.")
    gone = np.isnan(numbers)
    return gone if gone.any() else None


def _add(carry: tuple[np.ndarray, np.ndarray], block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Add one block to the sums of what is there, and to its weight."""
    totals, counted = carry
    values, weights, gone = block.values, weights_of(block), _missing(block)
    numbers, weight = cells(values), by_row(values, weights)
    if gone is None:
        return totals + column_sums(values, weight * numbers), counted + weights.sum()
    totals = totals + column_sums(values, weight * np.where(gone, 0, numbers))
    if not issparse(values):
        # Not by subtraction: what is left of a column without any value is exactly 0.
        return totals, counted + column_sums(values, weight * ~gone)
    return totals, counted + weights.sum() - column_sums(values, weight * gone)
