"""Large arrays made small enough for a file of results: what a figure can show of them."""

from __future__ import annotations

import numpy as np

BINS = 40
"""Stretches of a long vector that are drawn by their extremes."""

SIDE = 28
"""The most points that a side of a map is kept with."""


def reduced(maps: np.ndarray) -> np.ndarray:
    """Return square maps (count, side, side) with at most `SIDE` points a side, by means over squares."""
    side = maps.shape[-1]
    by = -(-side // SIDE)
    kept = side // by
    cut = maps[:, : kept * by, : kept * by].astype(np.float64)
    return cut.reshape(len(maps), kept, by, kept, by).mean(axis=(2, 4))


def whole_numbers(picture: np.ndarray) -> list[list[int]]:
    """Return a map as whole numbers from -99 to 99: short in a file, and enough to look at."""
    most = float(np.abs(picture).max())
    return np.round(99 * picture / (most if most > 0 else 1)).astype(int).tolist()


def extremes(values: np.ndarray) -> np.ndarray:
    """Return the least and the largest number of each of `BINS` stretches, shape (2, BINS)."""
    stretches = np.array_split(values, BINS)
    return np.array([[one.min() for one in stretches], [one.max() for one in stretches]])
