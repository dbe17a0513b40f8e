"""Dimensions and labels of xarray objects: which are samples, which are latitudes, and their values."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame._system.extras import install_command
from eigengame.sources._base import SourceError, list_items
from eigengame.sources._grid import Grid, GridVariable
from eigengame.sources._map_coordinates import NAMES, UNITS

ENCODED = ("_FillValue", "missing_value", "scale_factor", "add_offset")
"""Attributes of values that were not decoded."""

UNNAMED = "_field"
"""Name of the variable of a DataArray without a name, within this package."""


def import_xarray() -> Any:
    """Return the module xarray; raise an error that names the extra if it is absent."""
    try:
        import xarray
    except ImportError:
        raise SourceError(
            f"xarray is needed for fields and netCDF: {install_command('xarray')}."
        ) from None
    return xarray


def as_dataset(data: Any) -> Any:
    """Return a DataArray or Dataset as a Dataset, with decoded values."""
    xarray = import_xarray()
    if isinstance(data, xarray.DataArray):
        # A DataArray may have the name of one of its coordinates, which a Dataset cannot.
        name = data.name if data.name is not None and data.name not in data.coords else UNNAMED
        data = data.to_dataset(name=name)
    if not isinstance(data, xarray.Dataset):
        raise SourceError(
            f"an xarray {type(data).__name__} is not a field: give a DataArray or a Dataset."
        )
    if not data.data_vars:
        raise SourceError("the Dataset has no variables: give one with at least one.")
    if any(set(ENCODED) & set(one.attrs) for one in data.data_vars.values()):
        data = xarray.decode_cf(data, decode_times=False, decode_coords=False)
    return data


def sample_dims(dataset: Any, dim: Any) -> tuple[str, ...]:
    """Return the sample dimensions: the given ones, the time, or the first of two dimensions."""
    known = tuple(map(str, next(iter(dataset.data_vars.values())).dims))
    if dim is None:
        times = [one for one in known if _is_time(dataset, one)]
        chosen = times[:1] if len(times) == 1 else list(known[:1]) if len(known) == 2 else []
        if len(known) == 2 and chosen != [known[0]]:
            raise SourceError(
                f"the dimensions are {list_items(known)}: the first one and the time are different. "
                "Give the dimension of the samples by dim= (--dim), or by as_source(data, dim=...)."
            )
        if not chosen:
            raise SourceError(
                f"none of the dimensions {list_items(known)} is known to be the time: give the dimension of the "
                "samples by dim= (--dim)."
            )
    else:
        chosen = [dim] if isinstance(dim, str) else [str(one) for one in dim]
    absent = [one for one in chosen if one not in known]
    if absent or not chosen or len(set(chosen)) < len(chosen):
        raise SourceError(
            f"dim={dim!r}: give one or several of the dimensions {list_items(known)}, each once."
        )
    if len(chosen) == len(known):
        raise SourceError(
            f"dim={dim!r} are all dimensions: at least one must be left as the features of a sample."
        )
    return tuple(chosen)


def feature_dims(one: Any, dims: Sequence[str]) -> tuple[str, ...]:
    """Return the dimensions of a variable that are not sample dimensions, in their order."""
    return tuple(dim for dim in one.dims if dim not in dims)


def grid_of(dataset: Any, dims: Sequence[str]) -> Grid:
    """Return the grid of the features of a dataset."""
    return Grid(
        tuple(_grid_variable(dataset, str(name), dims) for name in map(str, dataset.data_vars))
    )


def axis_of(coordinate: Any) -> str | None:
    """Return "latitude" or "longitude" if a coordinate is one by its attributes or its name (CF conventions)."""
    stated = {str(coordinate.attrs.get(key, "")).lower() for key in ("units", "standard_name")}
    for axis in ("latitude", "longitude"):
        known = axis in stated or stated & set(UNITS[axis])
        if known or str(coordinate.name).lower() in NAMES[axis]:
            return axis
    return None


def sample_labels(dataset: Any, dims: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the coordinates of each row along each sample dimension that has coordinates."""
    lengths = [int(dataset.sizes[dim]) for dim in dims]
    texts = {
        dim: [str(value) for value in plain_values(dataset[dim])] for dim in dims if dim in dataset.coords
    }  # fmt: skip
    places = list(itertools.product(*(range(length) for length in lengths))) if texts else []
    return {
        dim: [texts[dim][place[at]] for place in places]
        for at, dim in enumerate(dims)
        if dim in texts
    }


def plain_values(coordinate: Any) -> list[Any]:
    """Return a coordinate as numbers or texts; dates are written in ISO 8601."""
    values = np.asarray(coordinate.values)
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        exact = days if (days == values).all() else values.astype("datetime64[s]")
        return np.datetime_as_string(exact).tolist()
    if values.dtype.kind in "fiub":
        return values.tolist()
    return [
        value.isoformat() if hasattr(value, "isoformat") else str(value)
        for value in values.tolist()
    ]


def _grid_variable(dataset: Any, name: str, dims: Sequence[str]) -> GridVariable:
    """Return the grid of one variable."""
    own = feature_dims(dataset[name], dims)
    labelled = [dim for dim in own if dim in dataset.coords]
    axes = {dim: axis_of(dataset[dim]) for dim in labelled}
    return GridVariable(
        "" if name == UNNAMED else name,
        tuple(map(str, own)),
        tuple(int(dataset.sizes[dim]) for dim in own),
        {str(dim): plain_values(dataset[dim]) for dim in labelled},
        {str(dim): axis for dim, axis in axes.items() if axis is not None},
    )


def _is_time(dataset: Any, dim: str) -> bool:
    """Return whether a dimension is the time, by its name or its coordinate."""
    if dim.lower() == "time":
        return True
    if dim not in dataset.coords:
        return False
    one = dataset[dim]
    stated = {one.attrs.get("standard_name"), one.attrs.get("axis")}
    return one.dtype.kind == "M" or bool(stated & {"time", "T"})
