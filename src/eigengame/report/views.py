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

MOST_LAYERED = 100
"""Components with layers at most."""

MANY = 100_000
"""Features from which on not all loadings are sorted."""


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
    order = _largest(np.abs(values), BARS)
    used, places = np.unique(order, return_inverse=True)
    largest = np.take_along_axis(values, order, axis=1)
    return {
        "shown": shown,
        "named": names is not None or getattr(model, "layers_", None) is not None,
        "names": [_name(model, names, i) for i in used.tolist()],
        "features": places.reshape(order.shape).tolist(),
        "values": [[float(f"{value:.4g}") for value in row] for row in np.nan_to_num(largest)],
    }


def layers(model: Any) -> dict[str, Any] | None:
    """Return how components lie in the layers of a network, where rows are its activations."""
    found = getattr(model, "layers_", None)
    if found is None:
        return None
    shown = min(model.n_components_, MOST_LAYERED)
    shares = found.shares(model.components_)
    explained = found.explained(model.components_, model.explained_variance_)
    return {
        "shown": shown,
        "names": found.names,
        "features": [layer.end - layer.begin for layer in found],
        "explained": [float(f"{share:.4g}") for share in explained],
        "shares": [[float(f"{share:.3g}") for share in row] for row in shares[:shown]],
    }


def _largest(sizes: np.ndarray, count: int) -> np.ndarray:
    """Return the columns of the largest numbers of each row, the largest first; of many only these are sorted."""
    if sizes.shape[1] > MANY:
        few = np.argpartition(-sizes, count, axis=1)[:, :count]
        few.sort(axis=1)
    else:
        few = np.broadcast_to(np.arange(sizes.shape[1]), sizes.shape)
    order = np.argsort(-np.take_along_axis(sizes, few, axis=1), axis=1, kind="stable")[:, :count]
    return np.take_along_axis(few, order, axis=1)


def _name(model: Any, names: list[str] | None, column: int) -> str:
    """Return what a feature is called: by its name, by its place in a layer, or by its number."""
    if names is not None:
        return names[column]
    found = getattr(model, "layers_", None)
    if found is None:
        return f"column {column}"
    layer, place = found.at(column)
    return f"{layer.name}{list(place)}"


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
