"""Preparation of data whose features are selected already."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eigengame.preparation._base import PreparationStep
from eigengame.preparation.column_selection import ColumnSelection
from eigengame.preparation.prepared_source import Preparation


def without_selection(preparation: Preparation) -> Preparation | None:
    """Return the steps for data that has only the selected features, in their order.

    Parameters of steps before a selection are restricted to the selected features.

    Returns
    -------
    Preparation or None
        None if a step before a selection uses whole rows, so that it needs the other features too.
    """
    steps: list[PreparationStep] = []
    width = preparation.width
    for step in preparation.steps:
        if not isinstance(step, ColumnSelection):
            steps.append(step)
            continue
        assert step.indices is not None
        if any(one.whole_rows for one in steps):
            return None
        steps, width = [_restricted(one, step.indices) for one in steps], len(step.indices)
    return Preparation(tuple(steps), width)


def _restricted(step: PreparationStep, indices: np.ndarray) -> PreparationStep:
    """Return a step with the parameters of some features only."""
    return replace(step, **{name: array[indices] for name, array in step.arrays().items()})
