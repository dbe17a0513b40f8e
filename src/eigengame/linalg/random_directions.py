"""Random orthonormal directions. NumPy draws them, so nothing is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np


def random_orthonormal(count: int, d: int, dtype: Any, seed: int) -> np.ndarray:
    """Return random orthonormal directions, shape (count, d)."""
    draws = np.random.default_rng(seed).standard_normal((count, d), dtype)
    if d < 4 * count:
        return np.ascontiguousarray(np.linalg.qr(draws.T)[0].T)
    # With many more features than directions the draws are nearly orthogonal, and Cholesky is accurate enough.
    factor = np.linalg.cholesky((draws @ draws.T).astype(np.float64))
    return np.linalg.inv(factor).astype(dtype) @ draws


def random_outside(others: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return random orthonormal directions (count, d) outside the span of orthonormal ones (m, d), in float64."""
    draws = np.random.default_rng(seed).standard_normal((count, others.shape[1]))
    for _ in range(2):  # the second time for what rounding has left of the others
        draws = draws - (draws @ others.T) @ others
        draws = np.linalg.qr(draws.T)[0].T
    return draws
