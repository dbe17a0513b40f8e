"""Unit variance, with the standard deviations of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigengame.preparation._base import Step, TrainingData
from eigengame.preparation.deviations import add
from eigengame.preparation.stored_values import by_column, cells, with_cells
from eigengame.sources import Block


@dataclass(frozen=True, eq=False)
class Scale(Step):
    """Divide each feature by its standard deviation. Zeros stay zeros, so sparse rows stay sparse.

    Parameters
    ----------
    deviations : array of shape (d,), optional
        Learnt, as scikit-learn's StandardScaler does (ddof=0).
    """

    kind: ClassVar[str] = "scale"
    floating: ClassVar[bool] = True

    deviations: np.ndarray | None = None

    @property
    def constant(self) -> np.ndarray:
        """The features without any deviation, by number: they are left as they are."""
        assert self.deviations is not None
        return np.flatnonzero(self.deviations == 0)

    def learn(self, source: TrainingData) -> Scale:
        """Return the step with the standard deviations of all rows: one pass."""
        return Scale(source.fold(add, None, "scale='two-pass'").deviation())

    def apply(self, block: Block) -> Block:
        """Return the block with its features divided."""
        assert self.deviations is not None
        deviations = by_column(block.values, self.deviations)
        return Block(divided(block.values, deviations), block.weights)


def divided(values: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return values divided by deviations that stand beside the stored numbers; 0 divides nothing."""
    numbers = cells(values)
    dtype = np.result_type(numbers.dtype, np.float32)
    by = np.where(deviations > 0, deviations, 1).astype(dtype)
    return with_cells(values, np.divide(numbers, by, dtype=dtype))
