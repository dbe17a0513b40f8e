"""Latitudes and longitudes of maps in HDF5 files, by the conventions of netCDF 4 and CF."""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = {
    "latitude": ("degrees_north", "degree_north", "degrees_n", "degree_n"),
    "longitude": ("degrees_east", "degree_east", "degrees_e", "degree_e"),
}
"""Units that identify an axis (CF conventions), in lower case."""

NAMES = {"latitude": ("lat", "latitude"), "longitude": ("lon", "longitude")}
"""Names of coordinate variables, in lower case."""


def map_coordinates(dataset: Any) -> dict[str, np.ndarray] | None:
    """Return "latitude" and "longitude" in the order of the last two axes of (rows, h, w); None if unknown.

    Parameters
    ----------
    dataset : h5py.Dataset
        Its dimensions have scales, which netCDF 4 writes for every coordinate variable.
    """
    if len(dataset.shape or ()) not in (3, 4) or not hasattr(dataset, "dims"):
        return None
    found: dict[str, np.ndarray] = {}
    for axis in (1, 2):
        for scale in dataset.dims[axis].values():
            name = _axis_of(scale)
            if name is not None and scale.shape == (dataset.shape[axis],):
                found.setdefault(name, np.asarray(scale[()], np.float64))
    return found if len(found) == 2 else None


def _axis_of(scale: Any) -> str | None:
    """Return whether a scale contains latitudes or longitudes, by its attributes or its name."""
    stated = {_text(scale.attrs.get(key, "")) for key in ("units", "standard_name")}
    short = (scale.name or "").rsplit("/", 1)[-1].lower()
    for name in ("latitude", "longitude"):
        if name in stated or stated & set(UNITS[name]) or short in NAMES[name]:
            return name
    return None


def _text(value: Any) -> str:
    """Return an attribute as text in lower case."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text.lower()
