"""Mean activation maps of the first block in full resolution, and vectors in the resolution of a figure."""

from __future__ import annotations

from typing import Any

import numpy as np

BINS = 40
"""Number of segments of a long vector that are drawn by their extremes."""

PERCENTILES = (1.0, 99.0)
"""Percentiles of a map that are drawn black and white. Padding makes the border of some maps an outlier."""


def mean_maps(layers: Any, components: np.ndarray) -> np.ndarray:
    """Return the mean over the channels of `conv1` for each component, shape (k, side, side).

    Parameters
    ----------
    layers : Layers
        Positions of the layers in a row.
    components : array of shape (k, d)
    """
    return np.asarray(layers.cut(components)["conv1"], np.float64).mean(axis=1)


def as_bytes(maps: np.ndarray) -> np.ndarray:
    """Return maps (..., side, side) as uint8, each with its own contrast (`PERCENTILES`)."""
    maps = np.asarray(maps, np.float64)
    low, high = np.percentile(maps, PERCENTILES, axis=(-2, -1), keepdims=True)
    spread = np.where(high > low, high - low, 1)
    return np.round(255 * np.clip((maps - low) / spread, 0, 1)).astype(np.uint8)


def extremes(values: np.ndarray) -> np.ndarray:
    """Return minimum and maximum of each of `BINS` segments, shape (2, BINS)."""
    segments = np.array_split(values, BINS)
    return np.array([[one.min() for one in segments], [one.max() for one in segments]])
