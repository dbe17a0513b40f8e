"""Views of a component: an image if rows are images, else its largest loadings; shares of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame.preparation import GridCells
from eigengame.report.arguments import CHANNELS
from eigengame.report.facts import json_numbers
from eigengame.report.map_grid import MapGrid
from eigengame.report.quantization import quantize_range, quantize_signed

MAX_PIXELS = 1_500_000
"""Maximum number of pixels in a page: first images are downsampled, then fewer components are shown."""

MAX_SIDE = 128
"""Maximum side of an image in pixels."""

MIN_SIDE = 32
"""Images are not downsampled below this side to make room for more components."""

BARS = 20
"""Number of loadings shown per component."""

MAX_LOADINGS = 1000
"""Maximum number of components shown by their loadings."""

MAX_LAYERS = 100
"""Maximum number of components shown by their layers."""

PARTIAL_SORT_ABOVE = 100_000
"""Number of features above which only the largest loadings are sorted."""


def pictures(
    model: Any,
    shape: tuple[int, int, int],
    grid: MapGrid | None = None,
    cells: GridCells | None = None,
) -> dict[str, Any]:
    """Return the components as images, and the mean image if the fit was centred.

    Parameters
    ----------
    model : EigenGamePCA
    shape : tuple of int
        Height, width, channels.
    grid : MapGrid, optional
        Coordinates of the pixels. Images are then maps with north up.
    cells : GridCells, optional
        Cells of a field that are features. The others are left blank.
    """

    def on_grid(values: np.ndarray) -> np.ndarray:
        whole = values if cells is None else cells.expand(values)
        return _oriented(whole.reshape(len(values), *shape), grid)

    channels = shape[2]
    height, width = _oriented(np.empty((1, *shape), np.int8), grid).shape[1:3]
    factor = _downsampling_factor(model.n_components_, (height, width, channels))
    small = (-(-height // factor), -(-width // factor))
    shown = min(model.n_components_, max(1, MAX_PIXELS // (small[0] * small[1] * channels)))
    images = on_grid(model.components_[:shown])
    mean = None
    if model.center:
        mean = quantize_range(_downsample(on_grid(model.mean_[None]), factor).ravel())
    return {
        "height": small[0],
        "width": small[1],
        "channels": CHANNELS[channels],
        "factor": factor,
        "shown": shown,
        "mean": mean,
        "images": quantize_signed(
            _downsample(images, factor).reshape(shown, -1), gaps=cells is not None
        ),
        "map": None if grid is None else _map_coordinates(grid, factor),
    }


def _oriented(images: np.ndarray, grid: MapGrid | None) -> np.ndarray:
    """Return images as they are drawn."""
    return images if grid is None else grid.orient(images)


def _map_coordinates(grid: MapGrid, factor: int) -> dict[str, list[float | None]]:
    """Return the coordinates of the rows and columns of a downsampled map."""
    found = {}
    for name, degrees in zip(("latitudes", "longitudes"), grid.drawn(), strict=True):
        means = _downsample(degrees.reshape(1, -1, 1, 1), factor, axes=(1,)).ravel()
        found[name] = json_numbers(means, digits=6)
    return found


def loadings(model: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the largest loadings of each component in descending order, with feature names."""
    shown = min(model.n_components_, MAX_LOADINGS)
    values = np.asarray(model.components_[:shown], np.float64)
    order = largest_indices(np.abs(values), BARS)
    used, places = np.unique(order, return_inverse=True)
    largest = np.take_along_axis(values, order, axis=1)
    return {
        "shown": shown,
        "named": names is not None or getattr(model, "layers_", None) is not None,
        "names": [feature_name(model, names, i) for i in used.tolist()],
        "features": places.reshape(order.shape).tolist(),
        "values": [[float(f"{value:.4g}") for value in row] for row in np.nan_to_num(largest)],
    }


def layers(model: Any) -> dict[str, Any] | None:
    """Return the share of each layer in the components, if rows are activations of a network."""
    found = getattr(model, "layers_", None)
    if found is None:
        return None
    shown = min(model.n_components_, MAX_LAYERS)
    shares = found.shares(model.components_)
    explained = found.explained(model.components_, model.explained_variance_)
    return {
        "shown": shown,
        "names": found.names,
        "features": [layer.end - layer.begin for layer in found],
        "explained": [float(f"{share:.4g}") for share in explained],
        "shares": [[float(f"{share:.3g}") for share in row] for row in shares[:shown]],
    }


def largest_indices(sizes: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the `count` largest numbers of each row, in descending order."""
    if sizes.shape[1] > PARTIAL_SORT_ABOVE:
        few = np.argpartition(-sizes, count, axis=1)[:, :count]
        few.sort(axis=1)
    else:
        few = np.broadcast_to(np.arange(sizes.shape[1]), sizes.shape)
    order = np.argsort(-np.take_along_axis(sizes, few, axis=1), axis=1, kind="stable")[:, :count]
    return np.take_along_axis(few, order, axis=1)


def feature_name(model: Any, names: Sequence[str] | None, column: int) -> str:
    """Return the name of a feature: given, its position in a layer, or its column number."""
    if names is not None:
        return names[column]
    found = getattr(model, "layers_", None)
    if found is None:
        return f"column {column}"
    layer, place = found.at(column)
    return f"{layer.name}{list(place)}"


def _downsampling_factor(count: int, shape: tuple[int, int, int]) -> int:
    """Return the number of pixels per side that are averaged to one."""
    height, width, channels = shape
    longest = max(height, width)
    factor = max(1, -(-longest // MAX_SIDE))
    while (
        count * channels * -(-height // factor) * -(-width // factor) > MAX_PIXELS
        and longest // (factor + 1) >= MIN_SIDE
    ):
        factor += 1
    return factor


def _downsample(images: np.ndarray, factor: int, axes: tuple[int, ...] = (1, 2)) -> np.ndarray:
    """Replace squares of pixels in images (k, h, w, c) by the means of those that have data."""
    if factor == 1:
        return images
    missing = np.isnan(images)
    if missing.any():
        present = _downsample(np.where(missing, 0.0, 1.0), factor, axes)
        sums = _downsample(np.where(missing, 0.0, images), factor, axes)
        return np.where(present > 0, sums / np.where(present > 0, present, 1), np.nan)
    for axis in axes:
        size = images.shape[axis]
        starts = np.arange(0, size, factor)
        lengths = np.diff(np.append(starts, size)).reshape(
            [-1 if i == axis else 1 for i in range(4)]
        )
        images = np.add.reduceat(images, starts, axis=axis) / lengths
    return images
