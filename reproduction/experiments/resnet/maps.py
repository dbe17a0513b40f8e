"""Reduction of large arrays to the resolution of a figure, for the results file."""

from __future__ import annotations

import numpy as np

BINS = 40
"""Number of segments of a long vector that are drawn by their extremes."""

SIDE = 28
"""Largest side of a stored map."""


def reduced(maps: np.ndarray) -> np.ndarray:
    """Reduce square maps (count, side, side) to at most `SIDE` points per side, by means over squares."""
    side = maps.shape[-1]
    by = -(-side // SIDE)
    kept = side // by
    cut = maps[:, : kept * by, : kept * by].astype(np.float64)
    return cut.reshape(len(maps), kept, by, kept, by).mean(axis=(2, 4))


def as_integers(picture: np.ndarray) -> list[list[int]]:
    """Return a map as integers from -99 to 99, which are short in a file."""
    most = float(np.abs(picture).max())
    return np.round(99 * picture / (most if most > 0 else 1)).astype(int).tolist()


def extremes(values: np.ndarray) -> np.ndarray:
    """Return minimum and maximum of each of `BINS` segments, shape (2, BINS)."""
    segments = np.array_split(values, BINS)
    return np.array([[one.min() for one in segments], [one.max() for one in segments]])
