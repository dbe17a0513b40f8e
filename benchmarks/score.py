"""Angles between components and the true ones, in NumPy.

`eigengame.metrics` has the same functions, but the process of another solver must not import JAX.
"""

from __future__ import annotations

import math

import numpy as np


def angles(components: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the angle between each component (k, d) and the true one, in radians; NaN counts as pi/2."""
    if components.shape != truth.shape:
        raise ValueError(f"components have shape {components.shape}, the true ones {truth.shape}.")
    found = np.asarray(components, np.float64)
    along = np.einsum("kd,kd->k", found, truth)
    across = np.linalg.norm(found - along[:, None] * truth, axis=1)
    return np.nan_to_num(np.arctan2(across, np.abs(along)), nan=math.pi / 2)


def streak(errors: np.ndarray, angle: float) -> int:
    """Return the number of leading angles within `angle`, up to the first that is not."""
    return int(np.cumprod(errors <= angle).sum())
