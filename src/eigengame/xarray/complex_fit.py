"""Fit of a complex field: see `eigengame.xarray.complex_modes`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from eigengame.estimator import EigenGamePCA
from eigengame.estimator.uncertified import UncertifiedWarning
from eigengame.preparation import GridCells, Preparation, prepare
from eigengame.sources._base import list_items
from eigengame.sources._grid import Grid
from eigengame.sources.fields import FieldSource
from eigengame.xarray.complex_modes import TURN, as_real, complex_modes, to_complex
from eigengame.xarray.field import Field
from eigengame.xarray.labels import labels_of
from eigengame.xarray.model import FieldModel
from eigengame.xarray.projection import factors

Parts = list[tuple[int, int]]
"""First and last feature of each variable in a real row; the first half are real parts."""


@dataclass(frozen=True)
class ComplexProjection:
    """Scores of complex fields.

    Attributes
    ----------
    preparation : Preparation
        Of the real rows.
    mean : xarray.Dataset
    parts : list of (int, int)
    components : complex array of shape (k, d)
    """

    preparation: Preparation
    mean: Any
    parts: Parts
    components: np.ndarray

    def scores(self, field: Field) -> np.ndarray:
        """Return the scores of the samples of a field, complex, shape (n, k)."""
        source = self.preparation.over(_real_source(field, self.mean))
        found = [
            # Each row is followed by i times the row.
            to_complex(np.asarray(block.values[::2], np.float64), self.parts) @ self.components.conj().T
            for block in source.blocks(0, 4096)
        ]  # fmt: skip
        return np.concatenate(found)


def fit_complex(
    field: Field,
    n_components: int | float | None,
    weights: Any,
    missing: str,
    running: dict[str, Any],
    options: dict[str, Any],
) -> FieldModel:
    """Return the complex components of a field.

    Parameters
    ----------
    field : Field
    n_components, weights, missing
        As for `eigengame.xarray.fit`.
    running : dict
        Arguments of `EigenGamePCA.fit`.
    options : dict
        Parameters of `EigenGamePCA`.
    """
    center = options.pop("center", True)
    mean = field.dataset.astype(np.complex128).mean(field.dims, skipna=True).compute()
    mean = mean if center else mean * 0
    real = _real_source(field, mean)
    if weights is not None:
        weights = _for_both_parts(real, weights)
    prepared = prepare(real, feature_weights=weights, missing=missing)
    rows, d = prepared.shape
    assert rows is not None
    most = min(rows // 2 - bool(center), d // 2)
    if isinstance(n_components, Integral) and not 1 <= n_components <= most:
        raise ValueError(f"n_components={n_components}: give a number from 1 to {most}.")
    share = n_components is not None and not isinstance(n_components, Integral)
    wanted = n_components if share else 2 * int(most if n_components is None else n_components)
    pca = EigenGamePCA(wanted, center=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertifiedWarning)  # it counts real components
        pca.fit(prepared, **running)
        if len(pca.components_) % 2:
            # The first component of a pair reaches the share, and its second one belongs to it.
            pca = EigenGamePCA(len(pca.components_) + 1, center=False, **options)
            pca.fit(prepared, **running)
    cells = prepared.steps[0]
    assert isinstance(cells, GridCells)
    grid, halved = _halved(cells)
    parts = _parts(cells)
    factor = _first_halves(factors(prepared.steps, d), parts)
    flat = np.concatenate([one.values.ravel() for one in _ordered(mean, grid)])
    found = complex_modes(pca, parts, rows // 2, flat[halved.used] * factor)
    _warn_uncertified(pca, found.angle)
    projection = ComplexProjection(prepared.preparation, mean, parts, found.components)
    return FieldModel(pca, found, labels_of(field, halved, grid), factor, projection, field)


def _warn_uncertified(pca: EigenGamePCA, angle: np.ndarray) -> None:
    """Warn about complex components that are not certified within the tolerance of the fit."""
    if pca.tol_ is None:
        return
    above = np.flatnonzero(~(angle <= pca.tol_)) + 1
    if len(above):
        warnings.warn(
            f"complex components {list_items(above.tolist())} of {len(angle)} are not certified within "
            f"{pca.tol_:g} rad: {pca.outcome_}. {pca.outcome_.advice} tol=None turns this warning off.",
            UncertifiedWarning,
            stacklevel=4,
        )


def _real_source(field: Field, mean: Any) -> FieldSource:
    """Return the real rows of a complex field."""
    return FieldSource(as_real(field.dataset, field.dims, mean), (*field.dims, TURN), field.name)


def _for_both_parts(real: FieldSource, weights: Any) -> np.ndarray:
    """Return one weight for each real feature: weights of the features of the field have no parts."""
    weights = np.asarray(weights) if isinstance(weights, list) else weights
    if isinstance(weights, np.ndarray):
        assert real.grid is not None
        sizes = np.cumsum([one.size // 2 for one in real.grid.variables])
        return np.concatenate([np.tile(one, 2) for one in np.split(weights, sizes[:-1])])
    return real.cell_weights(weights)


def _halved(cells: GridCells) -> tuple[Grid, GridCells]:
    """Return the grid and the cells without the dimension of parts."""
    grid = Grid.from_facts(cells.grid)
    variables = tuple(
        replace(one, dims=one.dims[1:], shape=one.shape[1:]) for one in grid.variables
    )
    assert cells.codes is not None
    sizes = np.cumsum([one.size for one in grid.variables])
    codes = [one[: len(one) // 2] for one in np.split(cells.codes, sizes[:-1])]
    plain = Grid(variables)
    return plain, replace(cells, grid=plain.facts(), codes=np.concatenate(codes))


def _parts(cells: GridCells) -> Parts:
    """Return the range of each variable among the features that are used."""
    sizes = np.cumsum([one.size for one in Grid.from_facts(cells.grid).variables])
    lengths = [int(one.sum()) for one in np.split(cells.used, sizes[:-1])]
    ends = np.cumsum(lengths).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _first_halves(values: np.ndarray, parts: Parts) -> np.ndarray:
    """Return the values of the real parts."""
    return np.concatenate([values[begin : (begin + end) // 2] for begin, end in parts])


def _ordered(mean: Any, grid: Grid) -> list[Any]:
    """Return the variables of a mean with the dimensions in the order of the grid."""
    pairs = zip(grid.variables, mean.data_vars.values(), strict=True)
    return [field.transpose(*one.dims) for one, field in pairs]
