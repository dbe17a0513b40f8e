"""`FieldModel`: components, scores and reconstructions of a field as labelled arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eigengame.rotation import varimax
from eigengame.sources import SourceError
from eigengame.sources._base import list_items
from eigengame.sources._field_labels import import_xarray
from eigengame.xarray.field import MODE, Field, on_grid
from eigengame.xarray.labels import FeatureLabels
from eigengame.xarray.modes import Modes
from eigengame.xarray.projection import Projection
from eigengame.xarray.rotated import RotatedField


class FieldModel:
    r"""Components of a field (EOFs), made by `eigengame.xarray.fit` or `load`.

    Each sample $x$ is multiplied by the weights $w$ of its features. The components $v_i$ are orthonormal, and are
    those of the weighted field: the score of a sample is $s_i = \sum_j w_j (x_j - \bar x_j)\, \bar v_{ij}$, and the
    field is $x_j \approx \bar x_j + \sum_i s_i v_{ij} / w_j$.

    Attributes
    ----------
    pca : EigenGamePCA
        The fitted estimator. Its features are the weighted cells that have values. For a complex field it is the
        real fit of twice the size (`eigengame.xarray.complex_modes`).
    """

    def __init__(
        self,
        pca: Any,
        modes: Modes,
        labels: FeatureLabels,
        factor: np.ndarray,
        projection: Projection,
        field: Field | None = None,
    ) -> None:
        self.pca, self._modes, self._labels = pca, modes, labels
        self._factor, self._projection, self._field = factor, projection, field
        self._scores: np.ndarray | None = None

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self._modes.components)

    def components(self, *, weighted: bool = True, scaled: bool = False) -> Any:
        """Return the components with dimensions (mode, *features); NaN in cells that were left out.

        Attributes and the coordinate `angle_bound` contain the certificate.

        Parameters
        ----------
        weighted : bool
            True returns the orthonormal components of the weighted field, as `eofs` and `xeofs` do. False divides
            them by the weights (and multiplies them by the standard deviations of ``standardise=True``): patterns
            in the units of the data, whose sum times the scores is the anomaly of the field.
        scaled : bool
            Whether to multiply each component by the standard deviation of its scores.
        """
        values = self._modes.components
        if not weighted:
            values = values / self._factor
        if scaled:
            values = values * np.sqrt(self._modes.variance)[:, None]
        about = {"long_name": "empirical orthogonal functions", "weighted": int(weighted)}
        return self._on_grid(values, "components", about | {"scaled": int(scaled)})

    def explained_variance(self) -> Any:
        """Return the variance of the scores of each component, with n - 1 degrees of freedom."""
        return self._per_mode(self._modes.variance, "explained_variance")

    def explained_variance_ratio(self) -> Any:
        """Return the share of each component in the variance of the weighted field."""
        return self._per_mode(self._modes.ratio, "explained_variance_ratio")

    def mean(self) -> Any:
        """Return the mean of the samples, in the units of the data."""
        values = (self._modes.mean / self._factor)[None]
        found = self._labels.labelled(values, {"_one": 1}, {}, "mean", {})
        return found.isel(_one=0, drop=True)

    def weights(self) -> Any:
        """Return the factor of each feature: its weight, over its standard deviation if it was standardised."""
        found = self._labels.labelled(self._factor[None], {"_one": 1}, {}, "weights", {})
        return found.isel(_one=0, drop=True)

    def scores(self, *, normalised: bool = False) -> Any:
        """Return the scores (principal components) of the data of the fit, with dimensions (*samples, mode).

        They are computed by one more pass, at the first call.

        Parameters
        ----------
        normalised : bool
            Whether to divide them by their standard deviations. Scores without variance become NaN.
        """
        if self._field is None:
            raise SourceError(
                "a model from a file has no data: give it to transform, which returns its scores."
            )
        if self._scores is None:
            self._scores = self._projection.scores(self._field)
        return self._scored(self._field, self._scores, normalised)

    def transform(self, data: Any, *, dim: Any = None, normalised: bool = False) -> Any:
        """Return the scores of other data on the same grid, with dimensions (*samples, mode).

        Parameters
        ----------
        data : DataArray, Dataset or path of a netCDF file
        dim : str or sequence of str, optional
            Sample dimensions. Default: those of the fit.
        normalised : bool
            Whether to divide them by the standard deviations of the scores of the fit.
        """
        if dim is None and self._field is not None:
            dim = self._field.dims
        field = on_grid(data, dim, self._labels.grid)
        return self._scored(field, self._projection.scores(field), normalised)

    def reconstruct(self, scores: Any) -> Any:
        """Return the field of some scores, in the units of the data, in memory.

        Parameters
        ----------
        scores : DataArray
            From `scores` or `transform`, not normalised. Samples and modes may be selected: components that are
            left out do not contribute.
        """
        if not isinstance(scores, import_xarray().DataArray) or MODE not in scores.dims:
            raise SourceError(f"scores: give a DataArray with the dimension {MODE!r}.")
        if scores.attrs.get("normalised"):
            raise SourceError(
                "the scores are normalised: give those of scores() or transform(), with normalised=False."
            )
        numbers = self._chosen(scores)
        dims = [dim for dim in scores.dims if dim != MODE]
        ordered = scores.transpose(*dims, MODE)
        rows = (
            np.asarray(ordered.values).reshape(-1, len(numbers)) @ self._modes.components[numbers]
        )
        lead = {str(dim): int(scores.sizes[dim]) for dim in dims} or {"_one": 1}
        coords = {
            str(key): value
            for key, value in scores.coords.items()
            if value.ndim > 0 and set(value.dims) <= set(dims)
        }
        found = self._labels.labelled(
            (rows + self._modes.mean) / self._factor, lead, coords, "reconstruction", {}
        )
        return found if dims else found.isel(_one=0, drop=True)

    def rotate(self, n: int | None = None, *, normalise: bool = True) -> RotatedField:
        """Return the first n components after a varimax rotation.

        Parameters
        ----------
        n : int, optional
            Number of components to rotate. Default: all.
        normalise : bool
            Whether to use Kaiser's normalisation.
        """
        if self._modes.is_complex:
            raise ValueError("components are complex, and varimax is defined for real ones.")
        count = self.n_components if n is None else n
        if not 1 <= count <= self.n_components:
            raise ValueError(f"n={n!r}: give a number from 1 to {self.n_components}.")
        deviations = np.sqrt(self._modes.variance[:count])
        if not (deviations > 0).all():
            raise ValueError(
                f"n={count}: components without variance cannot be rotated; give less."
            )
        loadings = self._modes.components[:count] * deviations[:, None]
        return RotatedField(self, varimax(loadings, normalise=normalise))

    def save(self, path: Any, *, full_paths: bool = False) -> Path:
        """Write the model to a `.safetensors` file, which `load` and `EigenGamePCA.load` read."""
        if self._modes.is_complex:
            raise ValueError(
                "a complex model cannot be saved: save components().to_dataset(name='components') as Zarr."
            )
        return self.pca.save(path, full_paths=full_paths)

    def __repr__(self) -> str:
        names = list_items(one.name or "field" for one in self._labels.grid.variables)
        return f"<FieldModel of {names}: {self.n_components} components, {self.pca.outcome_}>"

    # ------------------------------------------------------------------ labels

    def _mode_coords(self, count: int | None = None) -> dict[str, Any]:
        """Return the numbers of the components, and the bound of each."""
        angle = self._modes.angle[:count]
        about = {"units": "rad", "long_name": "bound on the angle to the true component"}
        return {MODE: np.arange(1, len(angle) + 1), "angle_bound": (MODE, angle, about)}

    def _attributes(self) -> dict[str, Any]:
        return self._modes.attributes() | {"outcome": str(self.pca.outcome_)}

    def _on_grid(self, values: np.ndarray, name: str, about: Mapping[str, Any]) -> Any:
        """Return one field for each component."""
        attrs, coords = self._attributes() | dict(about), self._mode_coords(len(values))
        return self._labels.labelled(values, {MODE: len(values)}, coords, name, attrs)

    def _per_mode(self, values: np.ndarray, name: str) -> Any:
        """Return one number for each component."""
        return import_xarray().DataArray(
            values, dims=(MODE,), coords=self._mode_coords(), name=name, attrs=self._attributes()
        )

    def _scored(self, field: Field, scores: np.ndarray, normalised: bool) -> Any:
        """Return scores (n, k) with the dimensions of the samples."""
        variance = self._modes.variance
        deviations = np.sqrt(np.where(variance > 0, variance, np.nan))
        values = scores / deviations if normalised else scores
        return import_xarray().DataArray(
            values.reshape(*field.sizes, -1),
            dims=(*field.dims, MODE),
            coords=field.sample_coords() | self._mode_coords(),
            name="scores",
            attrs=self._attributes() | {"normalised": int(normalised)},
        )

    def _chosen(self, scores: Any) -> np.ndarray:
        """Return the ranks of the components of some scores, from 0."""
        if MODE in scores.coords:
            numbers = np.asarray(scores[MODE].values, np.int64) - 1
        else:
            numbers = np.arange(scores.sizes[MODE])
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.n_components):
            raise SourceError(f"scores has modes beyond the {self.n_components} of the model.")
        return numbers
