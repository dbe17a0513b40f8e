"""Quantised numbers for the page: integers of one or two bytes, as base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

STEPS = 65534
"""Steps from the minimum to the maximum; the next code stands for NaN and infinity."""

NO_DATA = -128
"""Code of a place without data in an image."""


def quantize_range(values: np.ndarray) -> dict[str, Any]:
    """Quantise numbers to steps between their minimum and maximum, two bytes each.

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
    return {"low": low, "high": high, "codes": _base64(codes)}


def quantize_signed(values: np.ndarray, *, gaps: bool = False) -> dict[str, Any]:
    """Quantise rows of numbers to 255 steps around zero: one byte per number, one scale per row.

    Parameters
    ----------
    values : array of shape (k, n)
    gaps : bool
        Whether NaN is a place without data, which is encoded as -128. Otherwise it becomes 0.
    """
    missing = np.isnan(values)
    values = np.nan_to_num(np.asarray(values, np.float64), posinf=0, neginf=0)
    sizes = np.abs(values).max(axis=1)
    codes = np.round(values / np.where(sizes > 0, sizes, 1)[:, None] * 127).astype(np.int8)
    if gaps:
        codes[missing] = NO_DATA
    return {"sizes": [float(f"{size:.5g}") for size in sizes], "codes": _base64(codes)}


def _base64(codes: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(codes).tobytes()).decode("ascii")
