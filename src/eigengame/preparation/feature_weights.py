"""Weights of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from eigengame.preparation._base import PreparationStep
from eigengame.preparation.stored_values import per_column, stored, with_stored
from eigengame.sources import Block, Source, SourceError


@dataclass(frozen=True, eq=False)
class FeatureWeights(PreparationStep):
    """Multiply each feature by a weight. Zeros stay zeros, so sparse rows stay sparse.

    Parameters
    ----------
    weights : array of shape (d,)
        Positive and finite.
    """

    kind: ClassVar[str] = "feature weights"
    floating: ClassVar[bool] = True

    weights: np.ndarray

    def apply(self, block: Block) -> Block:
        """Return the block with its features multiplied."""
        numbers, weights = stored(block.values), per_column(block.values, self.weights)
        dtype = np.result_type(numbers.dtype, np.float32)
        product = np.multiply(numbers, weights.astype(dtype), dtype=dtype)
        return Block(with_stored(block.values, product), block.weights)


def check_feature_weights(source: Source, weights: Any) -> np.ndarray:
    """Return one weight for each feature of a source, shape (d,).

    Weights of a field may be 0: such cells are left out. Those of other data must be positive.
    """
    found = source.cell_weights(weights)
    if found is not None:
        return found
    if isinstance(weights, str):
        raise SourceError(
            f"feature_weights={weights!r}: {source.name} has no coordinates; give one number for each feature."
        )
    array = np.asarray(weights, np.float64)
    if array.shape != (source.shape[1],):
        raise SourceError(
            f"feature_weights has shape {array.shape}: give one for each of the {source.shape[1]} features of "
            f"{source.name}."
        )
    if not (np.isfinite(array) & (array > 0)).all():
        raise SourceError(
            "feature_weights must be positive and finite: leave out features by columns= or drop=."
        )
    return array
