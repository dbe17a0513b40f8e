"""A field to be fitted or transformed: a dataset with its sample dimensions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame.sources import Source, SourceError, as_source
from eigengame.sources._base import list_items
from eigengame.sources._field_labels import as_dataset, import_xarray, sample_dims
from eigengame.sources._grid import Grid
from eigengame.sources.fields import FieldSource

MODE = "mode"
"""Dimension of the components, counted from 1."""


@dataclass(frozen=True)
class Field:
    """A dataset with its sample dimensions.

    Attributes
    ----------
    dataset : xarray.Dataset
    dims : tuple of str
    name : str
    path : str, optional
        File of the dataset.
    several : bool
        Whether it was a Dataset, so that results are Datasets too.
    """

    dataset: Any
    dims: tuple[str, ...]
    name: str
    path: str | None
    several: bool

    def source(self) -> FieldSource:
        """Return the rows."""
        return FieldSource(self.dataset, self.dims, self.name, self.path)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Lengths of the sample dimensions."""
        return tuple(int(self.dataset.sizes[dim]) for dim in self.dims)

    def sample_coords(self) -> dict[str, Any]:
        """Return the coordinates along sample dimensions."""
        return {
            str(key): value
            for key, value in self.dataset.coords.items()
            if value.ndim > 0 and set(value.dims) <= set(self.dims)
        }

    def flat_weights(self, weights: Any) -> np.ndarray | None:
        """Return weights of the samples, shape (n,)."""
        if weights is None:
            return None
        if isinstance(weights, import_xarray().DataArray):
            if sorted(map(str, weights.dims)) != sorted(self.dims):
                raise SourceError(
                    f"sample_weight has the dimensions {list_items(weights.dims)}: give one weight for each "
                    f"sample, along {list_items(self.dims)}."
                )
            for dim in self.dims:
                if dim in weights.coords and dim in self.dataset.coords:
                    same = np.array_equal(weights[dim].values, self.dataset[dim].values)
                    if not same:
                        raise SourceError(
                            f"sample_weight has other coordinates along {dim!r} than the data, or in another order."
                        )
            weights = weights.transpose(*self.dims).values
        return np.asarray(weights, np.float64).reshape(-1)


def open_field(data: Any, dim: Any, variable: Any = None) -> Field:
    """Return the field of a DataArray, a Dataset or a netCDF file."""
    if isinstance(data, (str, os.PathLike)):
        chosen = {} if variable is None else {"variable": variable}
        source = as_source(data, dim=dim, **chosen)
        if not isinstance(source, FieldSource):
            raise SourceError(f"{source.name} is not a netCDF file: fit it by EigenGamePCA.")
        several = len(source.dataset.data_vars) > 1
        return Field(source.dataset, source.dims, source.name, source.path, several)
    if isinstance(data, Source):
        raise SourceError(
            f"{data.name} is a source: give the DataArray, or fit it by EigenGamePCA."
        )
    if variable is not None:
        raise SourceError(
            f"variable={variable!r} chooses from a file: give data[{variable!r}] instead."
        )
    xarray = import_xarray()
    if not isinstance(data, (xarray.DataArray, xarray.Dataset)):
        raise SourceError(
            f"a {type(data).__name__} has no dimensions: give a DataArray, a Dataset or the path of a netCDF file."
        )
    dataset = as_dataset(data)
    if MODE in dataset.dims:
        raise SourceError(
            f"the data has a dimension {MODE!r}, which is that of the components: rename it by data.rename."
        )
    name = str(getattr(data, "name", None) or "field")
    dims = sample_dims(dataset, dim)
    return Field(dataset, dims, name, None, isinstance(data, xarray.Dataset))


def on_grid(data: Any, dim: Any, grid: Grid) -> Field:
    """Return the field of data for a model, with the variables and the order of dimensions of its grid."""
    names = [one.name for one in grid.variables]
    if isinstance(data, import_xarray().Dataset) and all(names):
        absent = [name for name in names if name not in data]
        if absent:
            raise SourceError(f"the Dataset has no {list_items(absent)}, which the model needs.")
        data = data[names]
    paths = isinstance(data, (str, os.PathLike)) and all(names)
    field = open_field(data, dim, names if paths else None)
    found = list(field.dataset.data_vars)
    if len(found) != len(names):
        raise SourceError(f"the data has {len(found)} variables, but the model {len(names)}.")
    ordered = {}
    for key, one in zip(found, grid.variables, strict=True):
        variable = field.dataset[key]
        if set(variable.dims) != {*field.dims, *one.dims}:
            raise SourceError(
                f"{key} has the dimensions {list_items(variable.dims)}: give samples along "
                f"{list_items(field.dims)} and features along {list_items(one.dims)}."
            )
        ordered[key] = variable.transpose(*field.dims, *one.dims)
    return Field(field.dataset.assign(ordered), field.dims, field.name, None, field.several)
