r"""Weights of the features of a field: by latitude, or given.

Grid cells of equal angles become smaller towards the poles. With weights $\sqrt{\cos\phi}$ at latitude $\phi$ the
variance of a feature counts in proportion to the area of its cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eigengame.sources._base import SourceError, list_items
from eigengame.sources._field_labels import axis_of, feature_dims, import_xarray

COSLAT = "coslat"
"""Name of the weights by latitude."""

POLE = 1e-6
"""Largest number of degrees by which a latitude may exceed 90 by rounding."""


def field_weights(dataset: Any, dims: Sequence[str], weights: Any) -> np.ndarray:
    """Return one weight for each feature of a dataset, shape (d,): finite and not negative.

    Parameters
    ----------
    dataset : xarray.Dataset
    dims : sequence of str
        Sample dimensions.
    weights : "coslat", DataArray, mapping of variables to these, or array of shape (d,)
        Features are multiplied by them. A DataArray has some or all dimensions of the features, with the same
        coordinates. Features of weight 0, or NaN, are left out.
    """
    xarray = import_xarray()
    names = list(dataset.data_vars)
    if isinstance(weights, str) and weights != COSLAT:
        raise SourceError(f"weights={weights!r}: give {COSLAT!r}, a DataArray or an array.")
    if isinstance(weights, (xarray.Dataset, Mapping)):
        absent = [name for name in names if name not in weights]
        if absent:
            raise SourceError(
                f"weights has no {list_items(absent)}: give weights of each variable."
            )
        chosen = [weights[name] for name in names]
    elif isinstance(weights, (str, xarray.DataArray)):
        chosen = [weights] * len(names)
    else:
        return _checked(np.asarray(weights, np.float64), dataset, dims)
    parts = [
        _of_variable(dataset[name], dims, one) for name, one in zip(names, chosen, strict=True)
    ]
    return _checked(np.concatenate(parts), dataset, dims)


def _of_variable(field: Any, dims: Sequence[str], weights: Any) -> np.ndarray:
    """Return the weights of the features of one variable, flat."""
    xarray = import_xarray()
    template = field.isel(dict.fromkeys(dims, 0), drop=True)
    own = feature_dims(field, dims)
    if isinstance(weights, str):
        weights = _by_latitude(template)
    elif not isinstance(weights, xarray.DataArray):
        array = np.asarray(weights, np.float64)
        if array.shape != template.shape:
            raise SourceError(
                f"weights of {field.name} have shape {array.shape}, but its features have {template.shape}."
            )
        return array.ravel()
    other = [dim for dim in weights.dims if dim not in own]
    if other:
        raise SourceError(
            f"weights has the dimension {list_items(other)}: give weights along {list_items(own)} only. "
            "Samples are weighted by sample_weight."
        )
    bare = xarray.DataArray(
        np.zeros(template.shape), dims=own, coords={dim: template[dim] for dim in own if dim in template.coords}
    )  # fmt: skip
    known = {dim: weights[dim] for dim in weights.dims if dim in weights.coords}
    plain = xarray.DataArray(weights.values.astype(np.float64), dims=weights.dims, coords=known)
    try:
        aligned, _ = xarray.align(plain, bare, join="exact")
        full = (bare + aligned).transpose(*own)
    except ValueError:
        raise SourceError(
            f"weights has other coordinates than {field.name}, or in another order: give weights on the same grid, "
            "for example by weights.reindex_like(field)."
        ) from None
    return np.asarray(full.values, np.float64).ravel()


def _by_latitude(field: Any) -> Any:
    """Return the square root of the cosine of the latitude of each feature."""
    found = [one for one in field.coords.values() if axis_of(one) == "latitude"]
    # A dimension comes first: other coordinates may repeat it in other units.
    found.sort(key=lambda one: one.name not in field.dims)
    if not found:
        raise SourceError(
            f"{field.name} has no latitudes for weights={COSLAT!r}: its coordinates are "
            f"{list_items(field.coords)}, none of which is called lat or latitude, or has the units degrees_north. "
            "Rename it, or give weights as a DataArray."
        )
    degrees = found[0].astype(np.float64)
    if not bool((np.abs(degrees) <= 90 + POLE).all()):
        raise SourceError(
            f"the latitudes {degrees.name!r} of {field.name} are not within -90 and 90 degrees: give weights as a "
            "DataArray."
        )
    return np.sqrt(np.cos(np.deg2rad(degrees)).clip(0, 1))


def _checked(weights: np.ndarray, dataset: Any, dims: Sequence[str]) -> np.ndarray:
    """Return weights with NaN as 0; raise unless there is one for each feature, and none is negative."""
    sizes = [one.isel(dict.fromkeys(dims, 0)).size for one in dataset.data_vars.values()]
    if weights.shape != (sum(sizes),):
        raise SourceError(
            f"weights has shape {weights.shape}: give a DataArray, or one weight for each of {sum(sizes)} features."
        )
    weights = np.where(np.isnan(weights), 0.0, weights)
    if (weights < 0).any() or np.isinf(weights).any():
        raise SourceError(
            "weights must be finite and not negative; features of weight 0 are left out."
        )
    if not weights.any():
        raise SourceError("weights are all 0: no feature would be left.")
    return weights
