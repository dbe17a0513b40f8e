"""Labels of results: arrays of features and samples as DataArrays and Datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame.preparation import GridCells
from eigengame.sources._field_labels import feature_dims, import_xarray
from eigengame.sources._grid import Grid
from eigengame.xarray.field import Field


@dataclass(frozen=True)
class FeatureLabels:
    """Grid of the features of a model, and which of its cells are used.

    Attributes
    ----------
    grid : Grid
    cells : GridCells
    coords : mapping of str to mapping
        Coordinates of each variable of the fit, by its name. Empty for a model that was loaded: then coordinates
        along dimensions are those of the grid.
    several : bool
        Whether results are Datasets.
    """

    grid: Grid
    cells: GridCells
    coords: Mapping[str, Any]
    several: bool

    def labelled(
        self,
        values: np.ndarray,
        lead: Mapping[str, int],
        coords: Mapping[str, Any],
        name: str,
        attrs: Mapping[str, Any],
    ) -> Any:
        """Return values of the used cells on the grid, with NaN elsewhere.

        Parameters
        ----------
        values : array of shape (m, d')
        lead : mapping of str to int
            Dimensions before those of the features, and their lengths, whose product is m.
        coords : mapping
            Coordinates along these dimensions.
        name : str
            Name of a DataArray; variables of a Dataset keep theirs.
        attrs : mapping
        """
        xarray = import_xarray()
        full, begin, found = self.cells.expand(values), 0, {}
        for one in self.grid.variables:
            part = full[:, begin : begin + one.size]
            begin += one.size
            known = {dim: np.asarray(own) for dim, own in one.coordinates.items()}
            known |= dict(self.coords.get(one.name, {}))
            found[one.name] = xarray.DataArray(
                part.reshape(*lead.values(), *one.shape),
                dims=(*lead, *one.dims),
                coords=known | dict(coords),
                name=name,
                attrs=dict(attrs) | ({"variable": one.name} if one.name else {}),
            )
        if not self.several:
            return next(iter(found.values()))
        return xarray.Dataset(
            {key: one.rename(key) for key, one in found.items()}, attrs=dict(attrs)
        )


def labels_of(field: Field, cells: GridCells, grid: Grid) -> FeatureLabels:
    """Return the labels of the features of a field that was fitted."""
    coords = {}
    for one, variable in zip(grid.variables, field.dataset.data_vars.values(), strict=True):
        own = set(feature_dims(variable, field.dims))
        coords[one.name] = {
            str(key): value
            for key, value in variable.coords.items()
            if value.ndim > 0 and set(value.dims) <= own
        }
    return FeatureLabels(grid, cells, coords, field.several)
