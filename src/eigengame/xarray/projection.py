"""Scores of fields on real components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eigengame.preparation import FeatureWeights, PreparationStep, Scale
from eigengame.xarray.field import Field


class Projection(Protocol):
    """How a model computes scores."""

    def scores(self, field: Field) -> np.ndarray:
        """Return the scores of the samples of a field, shape (n, k)."""
        ...


@dataclass(frozen=True)
class RealProjection:
    """Scores by a fitted estimator, which repeats the preparation of its fit."""

    pca: Any

    def scores(self, field: Field) -> np.ndarray:
        """Return the scores of the samples of a field, shape (n, k)."""
        return np.concatenate(list(self.pca.transform_blocks(field.source())))


def factors(steps: tuple[PreparationStep, ...], d: int) -> np.ndarray:
    """Return the factor of each feature from the units of the data to those of the fit, shape (d,)."""
    factor = np.ones(d)
    for step in steps:
        if isinstance(step, FeatureWeights):
            factor = factor * step.weights
        elif isinstance(step, Scale):
            assert step.deviations is not None
            factor = factor / np.where(step.deviations > 0, step.deviations, 1)
    return factor
