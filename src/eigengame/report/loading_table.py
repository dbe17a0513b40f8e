"""Loadings for the download of a page: all of them if they are few, else the largest of each component."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame.report.arguments import CHANNELS
from eigengame.report.facts import json_numbers
from eigengame.report.map_grid import MapGrid
from eigengame.report.views import BARS, MAX_LOADINGS, feature_name, largest_indices

MAX_COMPLETE = 50_000
"""Maximum number of loadings in a page that contains all of them, four bytes each."""

MAX_LARGEST = 20_000
"""Maximum number of loadings otherwise: the same number for each component, and at least those that are drawn."""

MAX_NAME_LENGTH = 100


def loading_table(
    model: Any,
    names: Sequence[str] | None,
    shape: tuple[int, int, int] | None,
    grid: MapGrid | None,
) -> dict[str, Any]:
    """Return loadings in float32, with the names or the positions of their features.

    Parameters
    ----------
    model : EigenGamePCA
    names : list of str, optional
        Names of the features.
    shape : tuple of int, optional
        Height, width and channels of a row, if rows are images.
    grid : MapGrid, optional
        Coordinates, if rows are maps.
    """
    k, d = model.components_.shape
    shown = min(k, MAX_LOADINGS)
    columns, used = None, np.arange(d)
    if shown * d <= MAX_COMPLETE:
        values = np.asarray(model.components_[:shown])
    else:
        count = min(d, max(BARS, MAX_LARGEST // shown))
        # One component at a time: a copy of all can be as large as the model.
        rows = [np.asarray(row) for row in model.components_[:shown]]
        order = np.stack([largest_indices(np.abs(row)[None], count)[0] for row in rows])
        values = np.stack([row[chosen] for row, chosen in zip(rows, order, strict=True)])
        used, places = np.unique(order, return_inverse=True)
        columns = _base64(places.reshape(order.shape).astype("<u4"))
    named = shape is None and (names is not None or getattr(model, "layers_", None) is not None)
    return {
        "shown": shown,
        "complete": columns is None,
        "count": values.shape[1],
        "columns": columns,
        "features": None if columns is None else used.tolist(),
        "names": [feature_name(model, names, i)[:MAX_NAME_LENGTH] for i in used.tolist()]
        if named
        else None,
        "image": None if shape is None else _positions(shape, grid),
        "values": _base64(np.nan_to_num(values).astype("<f4")),
    }


def _positions(shape: tuple[int, int, int], grid: MapGrid | None) -> dict[str, Any]:
    """Return the names and coordinates of the axes of an image, in the order of the features."""
    height, width, channels = shape
    axes = ("row", "column") if grid is None else grid.axes
    return {
        "axes": axes,
        "sizes": [height, width],
        "coordinates": None if grid is None else [json_numbers(values) for values in grid.values],
        "channels": CHANNELS[channels],
    }


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
