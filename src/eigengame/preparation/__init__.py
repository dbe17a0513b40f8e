"""Data made ready as it is read: steps that learn what they need, then change block after block.

Columns, missing values, counts, unit variance and genotypes. Centring is not among them: that is the
game's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eigengame import _check
from eigengame.preparation._base import Step as Step
from eigengame.preparation.column_selection import Columns as Columns
from eigengame.preparation.counts import TARGET, WAYS
from eigengame.preparation.counts import Counts as Counts
from eigengame.preparation.genotypes import Genotypes as Genotypes
from eigengame.preparation.missing import POLICIES
from eigengame.preparation.missing import Missing as Missing
from eigengame.preparation.prepared_source import Preparation as Preparation
from eigengame.preparation.prepared_source import PreparedSource as PreparedSource
from eigengame.preparation.prepared_source import opened, opened_whole, without
from eigengame.preparation.prepared_source import preparation_of as preparation_of
from eigengame.preparation.prepared_source import same_preparation as same_preparation
from eigengame.preparation.scale import Scale as Scale
from eigengame.sources import SourceError

SCALES: dict[str, type[Step]] = {"two-pass": Scale}
"""The ways to unit variance, by what `scale` calls them."""

RUNNING = (
    "scale='running' was removed: dividing by a deviation that changes from row to row also changes the mean of "
    "a feature, which can dominate the components. Use scale='two-pass'; for a stream that can be read once, "
    "learn the deviations on a part of it: prepare(part, scale='two-pass').preparation.over(stream)."
)
"""What is said to who asks for an option of earlier versions."""


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
    r"""Return a source that gives the rows of another made ready, block by block.

    Steps are done in the order of the arguments, and each learns from the output of the previous step. There
    is one exception: with ``counts="log-normalise"`` columns are chosen after the counts are normalised, so
    that the total of a row is that of all its features. A model that was fitted on the result keeps the
    steps and applies them to the data it is given later.

    Parameters
    ----------
    data : anything that `as_source` takes
        Also data that is prepared already: the new steps follow the old ones.
    columns : sequence of str or int, or bool array of shape (d,), optional
        Features to keep, by name or number, in this order. To compute totals of counts from some features
        only, prepare twice: ``prepare(prepare(data, columns=...), counts="log-normalise")``.
    drop : str or int, or sequence of them, optional
        Features to leave out, by name or number. They are not part of the data: totals of counts do not
        include them. Cannot be combined with `columns`.
    missing : {"raise", "mean", "skip"}
        What to do about NaN: refuse it, replace it by the mean of the column's other values (one pass),
        or give the row weight 0. Infinity is refused in any case.
    counts : {"log1p", "log-normalise"}, optional
        "log-normalise" divides each row by its total and multiplies by `target` before the logarithm.
    target : float
        What every row adds up to before the logarithm.
    scale : {"two-pass"}, optional
        Divide each feature by its standard deviation over all rows, which takes one more pass. Constant
        features are not changed. The `sample_weight` of a fit is not known here.
    genotypes : bool
        Whether values are calls of 0, 1, 2 alleles with NaN for missing ones, to be standardised:
        $(g - 2p) / \sqrt{2p(1 - p)}$, 0 where missing or the same in all rows (one pass). Goes with
        `columns` only.
    **options
        Passed to `as_source`.

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
            f"genotypes=True with missing={missing!r}, counts={counts!r}, scale={scale!r}: genotypes "
            "are filled and scaled in their own way; leave these out."
        )
    chosen = None if columns is None else Columns(columns)
    if drop is not None and chosen is not None:
        raise SourceError(
            f"columns={columns!r} and drop={drop!r} were both given: give the columns to keep, or those to "
            "leave out."
        )
    counted = None if counts is None else Counts(counts, float(target))
    late = counted is not None and counted.whole_rows
    kept = None
    if drop is not None:
        source, kept = without(data, drop, **options)
    elif late and chosen:
        source = opened_whole(data, **options)
    else:
        source = opened(data, chosen, **options)
    if source.on_device:
        raise SourceError(
            f"{source.name} stay on the device, where nothing is prepared: do it in the network, or choose by "
            "layers= and nonfinite=."
        )
    prepared = source if isinstance(source, PreparedSource) else PreparedSource(source)

    known = any(isinstance(one, Missing) for one in prepared.steps)
    steps: list[Step | None] = [
        kept,
        None if late else chosen,
        Genotypes() if genotypes else None,
        Missing(missing) if not genotypes and (missing != "raise" or not known) else None,
        counted,
        chosen if late else None,
        SCALES[scale]() if scale is not None else None,
    ]
    for step in filter(None, steps):
        prepared = prepared.then(step)
    return prepared
