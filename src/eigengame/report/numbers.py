"""Many numbers in few letters: whole numbers of one or two bytes, as base64, for the page to unpack."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

STEPS = 65534
"""Steps from the least to the largest number; one more code stands for what is not a number."""


def ramp(values: np.ndarray) -> dict[str, Any]:
    """Return numbers as steps between the least and the largest, two bytes each.

    Parameters
    ----------
    values : array of shape (n,)
    """
    values = np.asarray(values, np.float64)
    finite = np.isfinite(values)
    low, high = (
        (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0, 0)
    )
    span = high - low if high > low else 1.0
    codes = np.full(values.shape, STEPS + 1, "<u2")
    codes[finite] = np.round((values[finite] - low) / span * STEPS)
    return {"low": low, "high": high, "codes": _text(codes)}


def signed(values: np.ndarray) -> dict[str, Any]:
    """Return rows of numbers, each as 255 steps about zero: one byte a number, one size a row.

    Parameters
    ----------
    values : array of shape (k, n)
    """
    values = np.nan_to_num(np.asarray(values, np.float64), posinf=0, neginf=0)
    sizes = np.abs(values).max(axis=1)
    codes = np.round(values / np.where(sizes > 0, sizes, 1)[:, None] * 127).astype(np.int8)
    return {"sizes": [float(f"{size:.5g}") for size in sizes], "codes": _text(codes)}


def _text(codes: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(codes).tobytes()).decode("ascii")
