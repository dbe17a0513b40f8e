"""Maps: images whose rows and columns are latitudes and longitudes, drawn with north up and east on the right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame.report.arguments import ReportError

AXES = ("latitude", "longitude")


@dataclass(frozen=True)
class MapGrid:
    """Coordinates of the pixels of a map.

    Attributes
    ----------
    axes : tuple of str
        "latitude" and "longitude" in the order of the axes of an image.
    values : tuple of two arrays
        Coordinates along each axis, in degrees.
    """

    axes: tuple[str, str]
    values: tuple[np.ndarray, np.ndarray]

    @property
    def latitudes(self) -> np.ndarray:
        """Latitudes in the order of the data."""
        return self.values[self.axes.index("latitude")]

    @property
    def longitudes(self) -> np.ndarray:
        """Longitudes in the order of the data, continued beyond 180 or 360 degrees instead of a jump."""
        return np.unwrap(self.values[self.axes.index("longitude")], period=360)

    def orient(self, images: np.ndarray) -> np.ndarray:
        """Return images (k, h, w, c) with latitude along the rows, north up, and east on the right."""
        if self.axes[0] == "longitude":
            images = images.swapaxes(1, 2)
        if self.latitudes[0] < self.latitudes[-1]:
            images = images[:, ::-1]
        return images[:, :, ::-1] if self.longitudes[0] > self.longitudes[-1] else images

    def drawn(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the latitudes from north to south and the longitudes from west to east."""
        return np.sort(self.latitudes)[::-1], np.sort(self.longitudes)


def check_coordinates(coordinates: Any, features: int) -> MapGrid | None:
    """Return the grid of a map, or raise an error.

    Parameters
    ----------
    coordinates : tuple of (latitudes, longitudes), mapping or None
        A mapping has the keys "latitude" and "longitude" in the order of the axes of an image.
    features : int
    """
    if coordinates is None:
        return None
    if isinstance(coordinates, Mapping):
        axes, values = tuple(coordinates), tuple(coordinates.values())
    else:
        axes, values = AXES, tuple(coordinates)
    if sorted(axes) != list(AXES) or len(values) != 2:
        raise ReportError(
            "coordinates: give (latitudes, longitudes), or a dict with the keys 'latitude' and 'longitude' in "
            "the order of the axes."
        )
    first, second = (_check_axis(name, degrees) for name, degrees in zip(axes, values, strict=True))
    grid = MapGrid((axes[0], axes[1]), (first, second))
    pixels = len(first) * len(second)
    if features % pixels:
        raise ReportError(
            f"coordinates has {len(first)} x {len(second)} points, but the model has {features} features: give the "
            "coordinates of one row as a map."
        )
    return grid


def _check_axis(name: str, degrees: Any) -> np.ndarray:
    """Return the coordinates along one axis, which must ascend or descend."""
    array = np.asarray(degrees, np.float64)
    if array.ndim != 1 or len(array) < 1 or not np.isfinite(array).all():
        raise ReportError(
            f"coordinates: the {name}s have shape {array.shape}: give one finite number per "
            f"{'row' if name == 'latitude' else 'column'} of the map."
        )
    steps = np.diff(np.unwrap(array, period=360) if name == "longitude" else array)
    if not ((steps > 0).all() or (steps < 0).all()):
        raise ReportError(
            f"coordinates: the {name}s neither ascend nor descend: sort the map, or give image_shape instead."
        )
    return array
