"""What a component looks like: a picture where rows are images, else its largest loadings."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame.report._check import CHANNELS
from eigengame.report.numbers import ramp, signed

PIXELS = 1_500_000
"""Pixels in a page at most: larger pictures are shrunk, then fewer components shown."""

SIDE = 128
"""Pixels along a picture at most."""

LEAST_SIDE = 32
"""Pictures are not shrunk below this to make room for more components."""

BARS = 20
"""Loadings kept for each component."""

MOST_BARRED = 1000
"""Components with loadings at most."""


def pictures(model: Any, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Return the components as images, and the mean where the fit was about one.

    Parameters
    ----------
    model : EigenGamePCA
    shape : tuple of int
        Height, width, channels.
    """
    height, width, channels = shape
    factor = _factor(model.n_components_, shape)
    small = (-(-height // factor), -(-width // factor))
    shown = min(model.n_components_, max(1, PIXELS // (small[0] * small[1] * channels)))
    images = model.components_[:shown].reshape(shown, height, width, channels)
    mean = None
    if model.center:
        mean = ramp(_shrunk(model.mean_.reshape(1, height, width, channels), factor).ravel())
    return {
        "height": small[0],
        "width": small[1],
        "channels": CHANNELS[channels],
        "factor": factor,
        "shown": shown,
        "mean": mean,
        "images": signed(_shrunk(images, factor).reshape(shown, -1)),
    }


def loadings(model: Any, names: list[str] | None) -> dict[str, Any]:
    """Return the largest loadings of each component, the largest first, with their features' names."""
    shown = min(model.n_components_, MOST_BARRED)
    values = np.asarray(model.components_[:shown], np.float64)
    order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :BARS]
    used, places = np.unique(order, return_inverse=True)
    largest = np.take_along_axis(values, order, axis=1)
    return {
        "shown": shown,
        "named": names is not None,
        "names": [f"column {i}" if names is None else names[i] for i in used.tolist()],
        "features": places.reshape(order.shape).tolist(),
        "values": [[float(f"{value:.4g}") for value in row] for row in np.nan_to_num(largest)],
    }


def _factor(count: int, shape: tuple[int, int, int]) -> int:
    """Return how many pixels along each side become one."""
    height, width, channels = shape
    longest = max(height, width)
    factor = max(1, -(-longest // SIDE))
    while (
        count * channels * -(-height // factor) * -(-width // factor) > PIXELS
        and longest // (factor + 1) >= LEAST_SIDE
    ):
        factor += 1
    return factor


def _shrunk(images: np.ndarray, factor: int) -> np.ndarray:
    """Return images (k, h, w, c) with squares of pixels replaced by their means."""
    if factor == 1:
        return images
    for axis in (1, 2):
        size = images.shape[axis]
        starts = np.arange(0, size, factor)
        lengths = np.diff(np.append(starts, size)).reshape(
            [-1 if i == axis else 1 for i in range(4)]
        )
        images = np.add.reduceat(images, starts, axis=axis) / lengths
    return images
