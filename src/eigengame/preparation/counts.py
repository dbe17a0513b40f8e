"""Logarithms of counts, with or without normalisation of the rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigengame.preparation._base import BadValue, PreparationStep
from eigengame.preparation.column_selection import ColumnSelection
from eigengame.preparation.stored_values import per_row, row_sums, stored, with_stored
from eigengame.sources import Block

TARGET = 1e4
"""Default total of a row before the logarithm, as in scanpy and Seurat."""


LOOKED_AT = 4096
"""Stored values of a block that are looked at: whether they are whole numbers."""


class NotCountsWarning(UserWarning):
    """Values that are not whole numbers are treated as counts."""


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
        self._check(block)
        return self._logarithms(block, self._factors(block))

    def apply_and_select(self, block: Block, selection: ColumnSelection) -> Block:
        """Return the logarithms of some features. The others only count for the totals of the rows."""
        self._check(block)
        factors = self._factors(block)
        return self._logarithms(selection.apply(block), factors)

    def _check(self, block: Block) -> None:
        """Raise if values are not counts; logarithms alone are also taken of normalised counts."""
        if self.way == "log1p":
            refuse_negative(block)
        else:
            check_counts(block, self.way)

    def _factors(self, block: Block) -> np.ndarray | None:
        """Return the factor (m,) that gives each row its total; None without normalisation."""
        if self.way == "log1p":
            return None
        totals = row_sums(block.values, stored(block.values))
        return np.divide(self.target, totals, out=np.zeros_like(totals), where=totals > 0)

    def _logarithms(self, block: Block, factors: np.ndarray | None) -> Block:
        values, numbers = block.values, stored(block.values)
        dtype = np.result_type(numbers.dtype, np.float32)
        if factors is None:
            return Block(with_stored(values, np.log1p(numbers, dtype=dtype)), block.weights)
        scaled = np.multiply(numbers, per_row(values, factors.astype(dtype)), dtype=dtype)
        return Block(with_stored(values, np.log1p(scaled, out=scaled)), block.weights)


def check_counts(block: Block, way: str) -> None:
    """Raise if a count is negative, and warn if most of the first are not whole numbers.

    A few may be means that replace missing values.
    """
    refuse_negative(block)
    numbers = stored(block.values).ravel()[:LOOKED_AT]
    numbers = numbers[numbers > 0]
    if 2 * np.count_nonzero(numbers != np.floor(numbers)) > numbers.size:
        warnings.warn(
            f"counts={way!r} is for raw counts, but most values are not whole numbers: data that is already "
            "normalised must not be normalised again. Give the raw counts (layer=...), or leave counts= out.",
            NotCountsWarning,
            stacklevel=2,
        )


def refuse_negative(block: Block) -> None:
    """Raise if a count is negative."""
    numbers = stored(block.values)
    if numbers.size and numbers.min() < 0:
        raise BadValue(block, numbers < 0, "but counts are never negative: are these raw counts?")
