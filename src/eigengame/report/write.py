"""`write_report`: write the HTML report of a fitted model."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eigengame._system.atomic_write import atomic_write
from eigengame.preparation import GridCells
from eigengame.report import facts
from eigengame.report.arguments import (
    CHANNELS,
    ReportError,
    check_image_shape,
    check_model,
    check_most,
    check_names,
    check_path,
)
from eigengame.report.loading_table import loading_table
from eigengame.report.map_grid import MapGrid, check_coordinates
from eigengame.report.page import render_page
from eigengame.report.row_set import open_row_set
from eigengame.report.scatter import scatter
from eigengame.report.views import layers, loadings, pictures
from eigengame.solver.certificates.tolerance import judged_tolerance
from eigengame.sources._grid import Grid


def write_report(
    model: Any,
    path: Any,
    *,
    data: Any = None,
    labels: Any = None,
    ids: Any = None,
    time: Any = None,
    overlay: Any = None,
    overlay_ids: Any = None,
    overlay_name: str | None = None,
    feature_names: Any = None,
    image_shape: Any = None,
    coordinates: Any = None,
    most: int = 5000,
    title: str | None = None,
) -> Path:
    """Write a report on a fitted model as one HTML file, and return its path.

    The page works offline, in light and dark mode, on phones and on wide screens. Components are judged by the
    `tol` of the fit, or by 0.05 rad if none was requested.

    Parameters
    ----------
    model : EigenGamePCA
        Fitted or loaded.
    path : path
        File to write; ends in `.html`. An existing file is replaced atomically.
    data : any input of `EigenGamePCA.transform_blocks`, optional
        Rows for the scatter plot of scores. Read once, block by block.
    labels : sequence of length n_samples, optional
        Colours and marks of the rows: strings and few whole numbers are classes, other numbers are a colour scale.
        Up to 40 classes are distinct; of more, the rarest are grouped.
    ids : sequence of length n_samples, optional
        Ids of the rows, shown on hover. Default: those that the data has (`.fam`, `.h5ad`, files of images, the
        index of a data frame).
    time : sequence of length n_samples, optional
        Dates, texts in ISO 8601, or numbers such as years: scores can be shown against them. Default: the index of
        a data frame, if it contains times.
    overlay : any input of `EigenGamePCA.transform_blocks`, optional
        A second data set, projected by the same model and drawn with another mark over the first. Needs `data`.
    overlay_ids : sequence, optional
        Ids of the rows of `overlay`.
    overlay_name : str, optional
        Name of `overlay` in the legend. Default: its file name.
    feature_names : sequence of str, optional
        Default: the feature names of the fit.
    image_shape : tuple of (height, width) or (height, width, channels), or "guess", optional
        Shape of a row, if rows are images. Default: the `image_shape` of the data's source. "guess" stands for a
        square image.
    coordinates : tuple of (latitudes, longitudes), or dict, optional
        Degrees along the two axes of a row, if rows are maps: they are drawn with north up and east on the right. A
        dict has the keys "latitude" and "longitude" in the order of the axes. Default: the coordinates of the
        data's source (netCDF 4).
    most : int
        Maximum number of rows to draw of each data set: an even, reproducible sample.
    title : str, optional
        Default: the name of the data that the model was fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> pca = EigenGamePCA(8, tol=1e-3, random_state=0).fit(digits.data)  # doctest: +SKIP
    >>> write_report(pca, "digits.html", data=digits.data, labels=digits.target,
    ...              image_shape=(8, 8))  # doctest: +SKIP
    """
    check_model(model)
    target, most = check_path(path), check_most(most)
    for name, given in (("labels", labels), ("ids", ids), ("time", time), ("overlay", overlay)):
        if given is not None and data is None:
            verb = "were" if name.endswith("s") else "was"
            raise ReportError(f"{name} {verb} given without data: give the rows too.")
    if overlay is None and (overlay_ids is not None or overlay_name is not None):
        raise ReportError("overlay_ids and overlay_name need overlay: give the second data set.")
    names: Sequence[str] | None = check_names(
        getattr(model, "feature_names_in_", None) if feature_names is None else feature_names,
        model.n_features_in_,
    )
    rows = second = None
    if data is not None:
        rows = open_row_set(model, data, labels=labels, ids=ids, time=time)
    if overlay is not None:
        second = open_row_set(model, overlay, ids=overlay_ids, name=overlay_name, prefix="overlay_")
    cells = _cells(model)
    shape, grid = _image(model, None if rows is None else rows.data, image_shape, coordinates)
    masked = cells is not None and not cells.used.all()
    if cells is not None and names is None and (masked or shape is None):
        names = CellNames(cells)
    page = render_page(
        title or _default_title(model),
        {
            "rows": int(model.n_samples_seen_),
            "features": int(model.n_features_in_),
            "passes": int(model.n_passes_),
            "route": model.outcome_.route,
            "penalties": facts.has_penalties(model),
            "source": facts.source_name(model),
            "outcome": facts.outcome(model),
            "certificate": facts.certificate(model.certificate_, judged_tolerance(model)),
            "components": facts.components(model),
            "run": facts.run(model),
            "scores": None if rows is None else scatter(model, rows, second, most),
            "pictures": None
            if shape is None
            else pictures(model, shape, grid, cells if masked else None),
            "loadings": loadings(model, names) if shape is None else None,
            # Positions in an image are those of a complete grid.
            "table": loading_table(
                model, names, None if masked else shape, None if masked else grid
            ),
            "layers": layers(model),
        },
    )
    with atomic_write(target) as draft:
        draft.write_text(page, encoding="utf-8")
    return target


def _image(
    model: Any, data: Any, image_shape: Any, coordinates: Any
) -> tuple[tuple[int, int, int] | None, MapGrid | None]:
    """Return the shape of a row as an image, and the grid if it is a map; None if unknown.

    Arguments come first, then the grid of a field, then what the source of the data declares.
    """
    features, cells = model.n_features_in_, _cells(model)
    if cells is not None and coordinates is None and image_shape is None:
        known = Grid.from_facts(cells.grid)
        with contextlib.suppress(ReportError):  # axes that cannot be drawn as a map
            return known.image_shape(), check_coordinates(known.map_axes(), known.size)
        return known.image_shape(), None
    grid = check_coordinates(coordinates, features)
    if grid is None:
        with contextlib.suppress(ReportError):  # not requested explicitly
            grid = check_coordinates(getattr(data, "coordinates", None), features)
    if image_shape is not None:
        shape = check_image_shape(image_shape, features)
    elif grid is not None:
        height, width = (len(values) for values in grid.values)
        channels = features // (height * width)
        if channels not in CHANNELS and coordinates is None:
            return None, None
        shape = check_image_shape((height, width, channels), features)
    else:
        shape = _image_shape(model, data)
    if grid is not None and shape is not None and shape[:2] != tuple(map(len, grid.values)):
        if coordinates is None:
            return shape, None
        raise ReportError(
            f"image_shape={image_shape!r} does not belong to coordinates of {len(grid.values[0])} x "
            f"{len(grid.values[1])} points: leave out image_shape."
        )
    return shape, grid


class CellNames(Sequence[str]):
    """Places of the features of a field, described when they are needed."""

    def __init__(self, cells: GridCells) -> None:
        self._grid, self._columns = Grid.from_facts(cells.grid), np.flatnonzero(cells.used)

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, at: Any) -> Any:
        return self._grid.describe(int(self._columns[at]))


def _cells(model: Any) -> GridCells | None:
    """Return the cells of the field that the model was fitted to; None if it was no field."""
    preparation = getattr(model, "_preparation", None)
    steps = () if preparation is None else preparation.steps
    return next((step for step in steps if isinstance(step, GridCells)), None)


def _image_shape(model: Any, data: Any) -> tuple[int, int, int] | None:
    """Return the image shape declared by the data, or else by the source of the fit."""
    fitted = facts.fingerprint(model) or {}
    declared = getattr(data, "image_shape", None) or fitted.get("image_shape")
    try:
        return check_image_shape(declared, model.n_features_in_)
    except ReportError:  # images were not requested explicitly
        return None


def _default_title(model: Any) -> str:
    """Return a title with the name of the data, if known."""
    name = facts.source_name(model)
    return "Principal components" if name is None else f"Principal components of {Path(name).name}"
