"""Streaming preparation of data: steps that learn their parameters, then transform block after block.

Steps select columns, handle missing values, transform counts, scale features and standardise genotypes. Centring is
not a step: the fit subtracts the mean itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eigengame import _check
from eigengame.preparation._base import PreparationStep as PreparationStep
from eigengame.preparation.column_selection import ColumnSelection as ColumnSelection
from eigengame.preparation.counts import TARGET, WAYS
from eigengame.preparation.counts import Counts as Counts
from eigengame.preparation.genotypes import Genotypes as Genotypes
from eigengame.preparation.missing import POLICIES
from eigengame.preparation.missing import Missing as Missing
from eigengame.preparation.opening import open_all_columns, open_columns, open_without
from eigengame.preparation.prepared_source import Preparation as Preparation
from eigengame.preparation.prepared_source import PreparedSource as PreparedSource
from eigengame.preparation.prepared_source import preparation_of as preparation_of
from eigengame.preparation.prepared_source import same_preparation as same_preparation
from eigengame.preparation.scale import Scale as Scale
from eigengame.sources import SourceError

SCALES: dict[str, type[PreparationStep]] = {"two-pass": Scale}
"""Steps by the values of `scale`."""

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
    missing: str = "raise",
    counts: str | None = None,
    target: float = TARGET,
    scale: str | None = None,
    genotypes: bool = False,
    **options: Any,
) -> PreparedSource:
    r"""Return a source with the rows of another source after some preparation steps.

    Steps run in the order of the parameters, and each learns from the output of the previous step. There is one
    exception: with ``counts="log-normalise"`` columns are selected after the counts are normalised, so that the
    total of a row includes all features. A fitted model keeps the steps and applies them to later data.

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
    missing : {"raise", "mean", "skip"}
        Policy for NaN: raise, replace it by the mean of the column's other values (one pass), or give the row
        weight 0. Infinity always raises.
    counts : {"log1p", "log-normalise"}, optional
        Take log(1 + x). "log-normalise" divides each row by its total and multiplies it by `target` first.
    target : float
        Total of each row before the logarithm.
    scale : {"two-pass"}, optional
        Divide each feature by its standard deviation over all rows (one pass). Constant features are not
        changed. The `sample_weight` of a fit is not used.
    genotypes : bool
        Whether values are calls of 0, 1 or 2 alleles, with NaN for missing calls, to be standardised:
        $(g - 2p) / \sqrt{2p(1 - p)}$, 0 if missing or constant (one pass). Can only be combined with
        `columns` and `drop`.
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
        _check.one_of("counts", counts, WAYS)
    if scale == "running":
        raise ValueError(RUNNING)
    if scale is not None:
        _check.one_of("scale", scale, SCALES)
    _check.positive("target", target)
    if genotypes and (missing == "skip" or counts is not None or scale is not None):
        raise ValueError(
            f"genotypes=True with missing={missing!r}, counts={counts!r}, scale={scale!r}: genotypes are "
            "filled and scaled by their allele frequencies; leave out the other options."
        )
    selection = None if columns is None else ColumnSelection(columns)
    if drop is not None and selection is not None:
        raise SourceError(
            f"columns={columns!r} and drop={drop!r} were both given: give the columns to keep, or the columns "
            "to leave out."
        )
    count_step = None if counts is None else Counts(counts, float(target))
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

    checked = any(isinstance(step, Missing) for step in prepared.steps)
    steps: list[PreparationStep | None] = [
        remaining,
        None if select_late else selection,
        Genotypes() if genotypes else None,
        Missing(missing) if not genotypes and (missing != "raise" or not checked) else None,
        count_step,
        selection if select_late else None,
        SCALES[scale]() if scale is not None else None,
    ]
    for step in filter(None, steps):
        prepared = prepared.then(step)
    return prepared
