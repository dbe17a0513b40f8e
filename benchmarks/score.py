"""How near components are to the truth, in NumPy alone.

`eigengame.metrics` has the same measures; they are written again here because a peer's process must
not import JAX.
"""

from __future__ import annotations

import math

import numpy as np


def angles(components: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the angle of each component (k, d) to the true one, in radians; a NaN is a right angle."""
    if components.shape != truth.shape:
        raise ValueError(f"components have shape {components.shape}, the truth {truth.shape}.")
    found = np.asarray(components, np.float64)
    along = np.einsum("kd,kd->k", found, truth)
    across = np.linalg.norm(found - along[:, None] * truth, axis=1)
    return np.nan_to_num(np.arctan2(across, np.abs(along)), nan=math.pi / 2)


def streak(errors: np.ndarray, angle: float) -> int:
    """Return how many leading angles are within `angle`: it stops at the first miss."""
    return int(np.cumprod(errors <= angle).sum())
