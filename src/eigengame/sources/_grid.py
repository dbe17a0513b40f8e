"""Grids of fields: names and coordinates of the features of a row, as plain values that a model file can store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

COORDINATE_TOLERANCE = 1e-5
"""Largest relative difference between equal coordinates: files store them in float32 or in float64."""


@dataclass(frozen=True)
class GridVariable:
    """The features of one variable of a field, in C order.

    Attributes
    ----------
    name : str
        Name of the variable; empty if it has none.
    dims : tuple of str
        Dimensions of the features.
    shape : tuple of int
    coordinates : mapping of str to list
        Numbers or texts along each dimension that has coordinates.
    axes : mapping of str to str
        "latitude" or "longitude" by the dimensions that are one.
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coordinates: Mapping[str, Sequence[Any]]
    axes: Mapping[str, str]

    @property
    def size(self) -> int:
        """Number of features."""
        return math.prod(self.shape)

    def facts(self) -> dict[str, Any]:
        """Return the variable as plain JSON."""
        return {
            "name": self.name,
            "dims": list(self.dims),
            "shape": list(self.shape),
            "coordinates": {dim: list(values) for dim, values in self.coordinates.items()},
            "axes": dict(self.axes),
        }


@dataclass(frozen=True)
class Grid:
    """The features of a field: those of each variable, one variable after the other."""

    variables: tuple[GridVariable, ...]

    @property
    def size(self) -> int:
        """Number of features."""
        return sum(one.size for one in self.variables)

    def facts(self) -> list[dict[str, Any]]:
        """Return the grid as plain JSON."""
        return [one.facts() for one in self.variables]

    @classmethod
    def from_facts(cls, facts: Sequence[Mapping[str, Any]]) -> Grid:
        """Return a grid from the result of `facts`."""
        return cls(
            tuple(
                GridVariable(
                    str(one["name"]),
                    tuple(one["dims"]),
                    tuple(int(length) for length in one["shape"]),
                    dict(one["coordinates"]),
                    dict(one["axes"]),
                )
                for one in facts
            )
        )

    def describe(self, column: int) -> str:
        """Return the place of a feature as text, such as "sst at lat=10.0, lon=120.0"."""
        for one in self.variables:
            if column < one.size:
                place = [int(i) for i in np.unravel_index(column, one.shape)]
                where = ", ".join(
                    f"{dim}={one.coordinates[dim][i]}" if dim in one.coordinates else f"{dim}[{i}]"
                    for dim, i in zip(one.dims, place, strict=True)
                )
                return f"{one.name or 'the field'} at {where}"
            column -= one.size
        raise IndexError(column)

    def difference(self, other: Grid) -> str | None:
        """Return a phrase on the first difference of another grid from this one; None if they agree."""
        if len(self.variables) != len(other.variables):
            return f"{len(other.variables)} variables instead of {len(self.variables)}"
        for one, found in zip(self.variables, other.variables, strict=True):
            if (one.dims, one.shape) != (found.dims, found.shape):
                return f"{_sizes(found)} instead of {_sizes(one)}"
            for dim in one.coordinates.keys() & found.coordinates.keys():
                if not _same(one.coordinates[dim], found.coordinates[dim]):
                    return f"other coordinates along {dim!r}, or the same in another order"
        return None

    def map_axes(self) -> dict[str, np.ndarray] | None:
        """Return "latitude" and "longitude" in the order of the axes, if the grid is one map; else None."""
        if len(self.variables) != 1:
            return None
        one = self.variables[0]
        dims = [dim for dim, length in zip(one.dims, one.shape, strict=True) if length > 1]
        if len(dims) != 2 or sorted(one.axes.get(dim, "") for dim in dims) != [
            "latitude",
            "longitude",
        ]:
            return None
        return {one.axes[dim]: np.asarray(one.coordinates[dim], np.float64) for dim in dims}

    def image_shape(self) -> tuple[int, int, int] | None:
        """Return height, width and 1, if the grid has two dimensions longer than 1; else None."""
        lengths = [length for length in self.variables[0].shape if length > 1]
        if len(self.variables) != 1 or len(lengths) != 2:
            return None
        return lengths[0], lengths[1], 1


def _sizes(one: GridVariable) -> str:
    """Return dimensions and lengths as text."""
    return "(" + ", ".join(f"{dim}: {n}" for dim, n in zip(one.dims, one.shape, strict=True)) + ")"


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether coordinates are equal: texts exactly, numbers up to the rounding of float32."""
    if len(one) != len(other):
        return False
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype.kind not in "fiu" or second.dtype.kind not in "fiu":
        return first.tolist() == second.tolist()
    largest = float(np.abs(first).max(initial=0.0))
    return bool(np.all(np.abs(first - second) <= COORDINATE_TOLERANCE * largest))
