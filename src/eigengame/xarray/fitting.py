"""`fit`: components of a field, and `load`: those of a model file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eigengame.estimator import EigenGamePCA
from eigengame.preparation import GridCells, prepare
from eigengame.sources import SourceError
from eigengame.sources._grid import Grid
from eigengame.xarray.complex_fit import fit_complex
from eigengame.xarray.complex_modes import is_complex
from eigengame.xarray.field import open_field
from eigengame.xarray.labels import FeatureLabels, labels_of
from eigengame.xarray.model import FieldModel
from eigengame.xarray.modes import real_modes
from eigengame.xarray.projection import RealProjection, factors


def fit(
    data: Any,
    n_components: int | float | None = None,
    *,
    dim: str | Sequence[str] | None = "time",
    variable: str | Sequence[str] | None = None,
    weights: Any = None,
    missing: str = "raise",
    standardise: bool = False,
    sample_weight: Any = None,
    checkpoint: Any = None,
    progress: Any = False,
    **options: Any,
) -> FieldModel:
    r"""Find the components (EOFs) of a field.

    Parameters
    ----------
    data : DataArray, Dataset or path of a netCDF file
        In memory, in a file, or with Dask chunks of any shape: it is read by blocks of samples. The variables of a
        Dataset are fitted together. Complex fields have complex components; unless Dask holds them, they are copied
        in memory.
    n_components : int, float or None
        Number of components, share of the variance to explain in (0, 1), or None for all.
    dim : str or sequence of str
        Sample dimensions. The others are features. None finds the time.
    variable : str or sequence of str, optional
        Variables of a netCDF file.
    weights : "coslat", DataArray, Dataset or array, optional
        Weights by which features are multiplied. "coslat" is $\sqrt{\cos\phi}$ of the latitude $\phi$, so that the
        variance of a cell counts by its area. Cells of weight 0 or NaN are left out.
    missing : {"raise", "mean", "skip"}
        Policy for NaN in cells that have a value in other samples: raise; replace it by the mean of the cell; or
        skip the sample. Cells that are NaN in all samples, such as land, are always left out.
    standardise : bool
        Whether to divide each feature by its standard deviation, before the weights are applied. Recommended for
        variables of different units.
    sample_weight : array or DataArray along `dim`, optional
        Weights of the samples.
    checkpoint, progress
        As for `EigenGamePCA.fit`.
    **options
        Parameters of `EigenGamePCA`, such as ``tol=1e-6`` or ``random_state=0``.

    Returns
    -------
    FieldModel

    Examples
    --------
    >>> import eigengame.xarray
    >>> model = eigengame.xarray.fit(sst, 4, dim="time", weights="coslat")  # doctest: +SKIP
    >>> model.components().sel(mode=1).plot()  # doctest: +SKIP
    """
    if options.get("whiten"):
        raise ValueError("whiten=True: leave it out, and use scores(normalised=True).")
    field = open_field(data, dim, variable)
    running = {"checkpoint": checkpoint, "progress": progress}
    if is_complex(field.dataset):
        if sample_weight is not None or standardise:
            raise ValueError(
                "sample_weight and standardise are not supported for complex fields: leave them out, and give "
                "weights of the features."
            )
        if missing == "skip":
            raise ValueError(
                "missing='skip' is not supported for complex fields, which are centred before samples are skipped: "
                "leave out samples by data.dropna(dim), or give missing='mean'."
            )
        return fit_complex(field, n_components, weights, missing, running, options)
    prepared = prepare(
        field.source(),
        missing=missing,
        scale="two-pass" if standardise else None,
        feature_weights=weights,
    )
    pca = EigenGamePCA(n_components, **options)
    pca.fit(prepared, sample_weight=field.flat_weights(sample_weight), **running)
    cells = prepared.steps[0]
    assert isinstance(cells, GridCells)
    labels = labels_of(field, cells, Grid.from_facts(cells.grid))
    factor = factors(prepared.steps, prepared.shape[1])
    return FieldModel(pca, real_modes(pca), labels, factor, RealProjection(pca), field)


def load(path: Any) -> FieldModel:
    """Return the model of a file that `FieldModel.save` or the command `eigengame fit` wrote.

    Scores of the data of the fit are not stored: use `FieldModel.transform`.
    """
    pca = EigenGamePCA.load(path)
    steps = () if pca._preparation is None else pca._preparation.steps
    cells = next((step for step in steps if isinstance(step, GridCells)), None)
    if cells is None:
        raise SourceError(f"{path} is not a model of a field: use EigenGamePCA.load.")
    grid = Grid.from_facts(cells.grid)
    labels = FeatureLabels(grid, cells, {}, len(grid.variables) > 1)
    factor = factors(steps, pca.n_features_in_)
    return FieldModel(pca, real_modes(pca), labels, factor, RealProjection(pca))
