"""Logarithms of counts, with or without normalisation of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigengame.preparation._base import BadValue, PreparationStep
from eigengame.preparation.stored_values import per_row, row_sums, stored, with_stored
from eigengame.sources import Block

WAYS = ("log1p", "log-normalise")
TARGET = 1e4
"""Default total of a row before the logarithm, as in scanpy and Seurat."""


@dataclass(frozen=True, eq=False)
class Counts(PreparationStep):
    """Take log(1 + count). Zeros stay zeros, so sparse counts stay sparse.

    Parameters
    ----------
    way : {"log1p", "log-normalise"}
        "log-normalise" divides each row by its total and multiplies it by `target` first. A row of zeros
        stays zero.
    target : float
    """

    kind: ClassVar[str] = "counts"
    floating: ClassVar[bool] = True

    way: str = "log1p"
    target: float = TARGET

    @property
    def whole_rows(self) -> bool:
        """Whether a value depends on all features of its row, by the total of the row."""
        return self.way == "log-normalise"

    def apply(self, block: Block) -> Block:
        """Return the logarithms."""
        values, numbers = block.values, stored(block.values)
        if numbers.size and numbers.min() < 0:
            raise BadValue(
                block, numbers < 0, "but counts are never negative: are these raw counts?"
            )
        dtype = np.result_type(numbers.dtype, np.float32)
        if self.way == "log1p":
            return Block(with_stored(values, np.log1p(numbers, dtype=dtype)), block.weights)
        totals = row_sums(values, numbers)
        factors = np.divide(self.target, totals, out=np.zeros_like(totals), where=totals > 0)
        scaled = np.multiply(numbers, per_row(values, factors.astype(dtype)), dtype=dtype)
        return Block(with_stored(values, np.log1p(scaled, out=scaled)), block.weights)
