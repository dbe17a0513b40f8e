"""Counts: their logarithms, as they are or as shares of their row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigengame.preparation._base import BadValue, Step
from eigengame.preparation.stored_values import by_row, cells, row_sums, with_cells
from eigengame.sources import Block

WAYS = ("log1p", "log-normalise")
TARGET = 1e4
"""What rows add up to before the logarithm: the convention of scanpy and Seurat."""


@dataclass(frozen=True, eq=False)
class Counts(Step):
    """Take log(1 + count). Zeros stay zeros, so sparse counts stay sparse.

    Parameters
    ----------
    way : {"log1p", "log-normalise"}
        Counts as they are; or each row divided by its total and multiplied by `target` first. A row of
        zeros stays one.
    target : float
    """

    kind: ClassVar[str] = "counts"
    floating: ClassVar[bool] = True

    way: str = "log1p"
    target: float = TARGET

    @property
    def whole_rows(self) -> bool:
        """Whether a value depends on all features of its row: the total of the row is of all."""
        return self.way == "log-normalise"

    def apply(self, block: Block) -> Block:
        """Return the logarithms."""
        values, numbers = block.values, cells(block.values)
        if numbers.size and numbers.min() < 0:
            raise BadValue(
                block, numbers < 0, "but counts are never negative: are these raw counts?"
            )
        dtype = np.result_type(numbers.dtype, np.float32)
        if self.way == "log1p":
            return Block(with_cells(values, np.log1p(numbers, dtype=dtype)), block.weights)
        totals = row_sums(values, numbers)
        share = np.divide(self.target, totals, out=np.zeros_like(totals), where=totals > 0)
        shares = np.multiply(numbers, by_row(values, share.astype(dtype)), dtype=dtype)
        return Block(with_cells(values, np.log1p(shares, out=shares)), block.weights)
