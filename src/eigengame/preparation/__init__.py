"""Streaming preparation of data: steps that learn their parameters, then transform block after block.

Steps select columns, handle missing values, transform counts, scale features and standardise genotypes. Centring is
not a step: the fit subtracts the mean itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame import _check
from eigengame.preparation._base import PreparationStep as PreparationStep
from eigengame.preparation.column_selection import ColumnSelection as ColumnSelection
from eigengame.preparation.counts import TARGET
from eigengame.preparation.counts import Counts as Counts
from eigengame.preparation.feature_weights import FeatureWeights as FeatureWeights
from eigengame.preparation.feature_weights import check_feature_weights
from eigengame.preparation.genotypes import Genotypes as Genotypes
from eigengame.preparation.grid_cells import IGNORED, USED
from eigengame.preparation.grid_cells import GridCells as GridCells
from eigengame.preparation.missing import POLICIES
from eigengame.preparation.missing import Missing as Missing
from eigengame.preparation.opening import open_all_columns, open_columns, open_without
from eigengame.preparation.pearson import THETA
from eigengame.preparation.pearson import PearsonResiduals as PearsonResiduals
from eigengame.preparation.prepared_source import Preparation as Preparation
from eigengame.preparation.prepared_source import PreparedSource as PreparedSource
from eigengame.preparation.prepared_source import preparation_of as preparation_of
from eigengame.preparation.prepared_source import same_preparation as same_preparation
from eigengame.preparation.scale import Scale as Scale
from eigengame.preparation.variable_features import TopVariable as TopVariable
from eigengame.sources import SourceError

SCALES: dict[str, type[PreparationStep]] = {"two-pass": Scale}
"""Steps by the values of `scale`."""

COUNTS = ("log1p", "log-normalise", "pearson")
"""Values of `counts`."""

RUNNING = (
    "scale='running' was removed: dividing by a deviation that changes from row to row also changes the mean of "
    "a feature, which can dominate the components. Use scale='two-pass'; for a stream that can be read once, "
    "learn the deviations on a part of it: prepare(part, scale='two-pass').preparation.over(stream)."
)
"""Error message for an option of earlier versions."""


def prepare(
    data: Any,
    *,
    columns: Sequence[str | int] | None = None,
    drop: str | int | Sequence[str | int] | None = None,
    top_variable: int | None = None,
    missing: str = "raise",
    counts: str | None = None,
    target: float = TARGET,
    theta: float = THETA,
    scale: str | None = None,
    genotypes: bool = False,
    feature_weights: Any = None,
    **options: Any,
) -> PreparedSource:
    r"""Return a source with the rows of another source after some preparation steps.

    Steps run in the order of the parameters, and each learns from the output of the previous step. There are two
    exceptions: with ``counts="log-normalise"`` and ``counts="pearson"`` columns are selected after the counts are
    transformed, so that the total of a row includes all features; and `top_variable` always follows `counts`. A
    fitted model keeps the steps and applies them to later data.

    Parameters
    ----------
    data : anything that `as_source` takes
        If the data is already prepared, the new steps follow the old ones.
    columns : sequence of str or int, or bool array of shape (d,), optional
        Features to keep, by name or number, in this order. To compute totals of counts from some features
        only, prepare twice: ``prepare(prepare(data, columns=...), counts="log-normalise")``.
    drop : str or int, or sequence of them, optional
        Features to leave out, by name or number. Totals of counts do not include them. Cannot be combined
        with `columns`.
    top_variable : int, optional
        Keep this number of features that vary most (one pass): by the dispersion of counts relative to features
        with a similar mean, as in Seurat and ``scanpy.pp.highly_variable_genes(flavor="seurat")``, or by the
        variance of Pearson residuals. Without `counts`, values must be logarithms log(1 + x) of counts. Features
        with the same dispersion as the last one are kept too. Cannot be combined with `columns`.
    missing : {"raise", "mean", "skip"}
        Policy for NaN: raise, replace it by the mean of the column's other values (one pass), or give the row
        weight 0. Infinity always raises.
    counts : {"log1p", "log-normalise", "pearson"}, optional
        Take log(1 + x). "log-normalise" divides each row by its total and multiplies it by `target` first.
        "pearson" computes analytic Pearson residuals (one pass, dense rows); see `PearsonResiduals`.
    target : float
        Total of each row before the logarithm.
    theta : float
        Inverse overdispersion of counts, for Pearson residuals.
    scale : {"two-pass"}, optional
        Divide each feature by its standard deviation over all rows (one pass). Constant features are not
        changed. The `sample_weight` of a fit is not used.
    genotypes : bool
        Whether values are calls of 0, 1 or 2 alleles, with NaN for missing calls, to be standardised:
        $(g - 2p) / \sqrt{2p(1 - p)}$, 0 if missing or constant (one pass). Can only be combined with
        `columns` and `drop`.
    feature_weights : array of shape (d,), "coslat" or DataArray, optional
        Weights by which features are multiplied, as the last step. "coslat" is the square root of the cosine of
        the latitude of a field; the DataArray has dimensions of the features of a field. Cells of a field with
        weight 0 are left out.
    **options
        Options of `as_source`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, np.nan], [3.0, 4.0]])
    >>> next(prepare(rows, missing="mean").blocks(0, 2)).values
    array([[1., 4.],
           [3., 4.]])
    """
    _check.one_of("missing", missing, POLICIES)
    if counts is not None:
        _check.one_of("counts", counts, COUNTS)
    if scale == "running":
        raise ValueError(RUNNING)
    if scale is not None:
        _check.one_of("scale", scale, SCALES)
    _check.positive("target", target)
    _check.positive("theta", theta)
    if top_variable is not None:
        _check.whole("top_variable", top_variable)
    extra = {"missing": missing, "counts": counts, "scale": scale, "top_variable": top_variable}
    if genotypes and any(extra[name] not in (None, "raise", "mean") for name in extra):
        given = ", ".join(f"{name}={value!r}" for name, value in extra.items())
        raise ValueError(
            f"genotypes=True with {given}: genotypes are filled and scaled by their allele frequencies; leave out "
            "the other options."
        )
    selection = None if columns is None else ColumnSelection(columns)
    if drop is not None and selection is not None:
        raise SourceError(
            f"columns={columns!r} and drop={drop!r} were both given: give the columns to keep, or the columns "
            "to leave out."
        )
    if top_variable is not None and selection is not None:
        raise SourceError(
            f"columns and top_variable={top_variable} were both given: give one of them, or select among some "
            "columns by prepare(prepare(data, columns=...), top_variable=...)."
        )
    count_step = _count_step(counts, float(target), float(theta))
    select_late = count_step is not None and count_step.whole_rows
    remaining = None
    if drop is not None:
        source, remaining = open_without(data, drop, **options)
    elif select_late and selection:
        source = open_all_columns(data, **options)
    else:
        source = open_columns(data, selection, **options)
    if source.on_device:
        raise SourceError(
            f"{source.name} stay on the device and cannot be prepared: transform them in the network, or use "
            "layers= and nonfinite=."
        )
    prepared = source if isinstance(source, PreparedSource) else PreparedSource(source)
    weights = cells = None
    if feature_weights is not None:
        if remaining is not None or selection is not None:
            raise SourceError(
                "feature_weights cannot be combined with columns= or drop=: prepare twice, and give the weights of "
                "the selected features."
            )
        unprepared = source.source if isinstance(source, PreparedSource) else source
        weights = check_feature_weights(
            unprepared if prepared.grid is not None else prepared, feature_weights
        )
    if prepared.grid is not None:
        codes = None if weights is None else np.where(weights > 0, USED, IGNORED).astype(np.uint8)
        cells = GridCells(prepared.grid.facts(), missing != "raise", codes)

    checked = any(isinstance(step, Missing) for step in prepared.steps)
    steps: list[PreparationStep | None] = [
        cells,
        remaining,
        None if select_late else selection,
        Genotypes() if genotypes else None,
        Missing(missing) if not genotypes and (missing != "raise" or not checked) else None,
        count_step,
        selection if select_late else None,
        None if top_variable is None else _top_variable(prepared, count_step, top_variable),
        SCALES[scale]() if scale is not None else None,
    ]
    for step in filter(None, steps):
        prepared = prepared.then(step)
    if weights is not None:
        kept = next((step.used for step in prepared.steps if isinstance(step, GridCells)), None)
        used = weights if cells is None or kept is None else weights[kept]
        prepared = prepared.then(FeatureWeights(used))
    return prepared


def _count_step(way: str | None, target: float, theta: float) -> PreparationStep | None:
    """Return the step for a value of `counts`."""
    if way is None:
        return None
    return PearsonResiduals(theta) if way == "pearson" else Counts(way, target)


def _top_variable(
    prepared: PreparedSource, count_step: PreparationStep | None, count: int
) -> TopVariable:
    """Return the step that selects variable features, after the counts are transformed."""
    before = [*prepared.steps, *([] if count_step is None else [count_step])]
    residuals = any(isinstance(step, PearsonResiduals) for step in before)
    logarithms = any(isinstance(step, Counts) for step in before)
    return TopVariable(count, residuals=residuals, given=not residuals and not logarithms)
