"""Components of a field after a varimax rotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eigengame.rotation import Rotation
from eigengame.sources._field_labels import import_xarray
from eigengame.xarray.field import MODE

if TYPE_CHECKING:
    from eigengame.xarray.model import FieldModel


class RotatedField:
    """Rotated components of a `FieldModel`.

    Loadings are components times the standard deviations of their scores. Rotated loadings are in general not
    orthogonal; rotated scores have unit variance and are uncorrelated. The product of scores and loadings is that
    of the components that were rotated. A certificate bounds unrotated components only.

    Attributes
    ----------
    rotation : Rotation
        The matrix, and whether the iteration converged.
    """

    def __init__(self, model: FieldModel, rotation: Rotation) -> None:
        self._model, self.rotation = model, rotation

    def loadings(self, *, weighted: bool = True) -> Any:
        """Return the rotated loadings with dimensions (mode, *features), sorted by their variance.

        Parameters
        ----------
        weighted : bool
            False divides them by the weights of the features: the pattern of one standard deviation of a score, in
            the units of the data.
        """
        values = self.rotation.loadings
        if not weighted:
            values = values / self._model._factor
        about = {"rotation": "varimax", "weighted": int(weighted)}
        coords = {MODE: np.arange(1, len(values) + 1)}
        return self._model._labels.labelled(values, {MODE: len(values)}, coords, "loadings", about)

    def explained_variance(self) -> Any:
        """Return the variance of the weighted field along each rotated component."""
        variance = self.rotation.variance
        return import_xarray().DataArray(
            variance,
            dims=(MODE,),
            coords={MODE: np.arange(1, len(variance) + 1)},
            name="explained_variance",
            attrs={"rotation": "varimax"},
        )

    def scores(self) -> Any:
        """Return the rotated scores of the data of the fit: uncorrelated, with unit variance."""
        return self._turned(self._model.scores(normalised=True))

    def transform(self, data: Any, *, dim: Any = None) -> Any:
        """Return the rotated scores of other data."""
        return self._turned(self._model.transform(data, dim=dim, normalised=True))

    def _turned(self, scores: Any) -> Any:
        """Return normalised scores, rotated."""
        k = len(self.rotation.matrix)
        first = scores.isel({MODE: slice(0, k)})
        found = first.copy(data=np.asarray(first.values) @ self.rotation.matrix)
        found.attrs = {"rotation": "varimax", "normalised": 1}
        return found.drop_vars("angle_bound")
