"""Scaling of features to unit variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eigengame.preparation._base import PreparationStep, TrainingData
from eigengame.preparation.deviations import add
from eigengame.preparation.stored_values import per_column, stored, with_stored
from eigengame.sources import Block


@dataclass(frozen=True, eq=False)
class Scale(PreparationStep):
    """Divide each feature by its standard deviation. Zeros stay zeros, so sparse rows stay sparse.

    Parameters
    ----------
    deviations : array of shape (d,), optional
        Learnt standard deviations with ddof=0, as in scikit-learn's StandardScaler.
    """

    kind: ClassVar[str] = "scale"
    floating: ClassVar[bool] = True

    deviations: np.ndarray | None = None

    def learn(self, source: TrainingData) -> Scale:
        """Return the step with the standard deviations of all rows, from one pass."""
        return Scale(source.fold(add, None, "scale='two-pass'").deviation())

    def apply(self, block: Block) -> Block:
        """Return the block with its features divided."""
        assert self.deviations is not None
        numbers, deviations = stored(block.values), per_column(block.values, self.deviations)
        dtype = np.result_type(numbers.dtype, np.float32)
        divisors = np.where(deviations > 0, deviations, 1).astype(dtype)
        divided = np.divide(numbers, divisors, dtype=dtype)
        return Block(with_stored(block.values, divided), block.weights)
