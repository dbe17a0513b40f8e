"""Monitoring of rows by a fitted estimator: checks of the arguments, and blocks of statistics."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh, subspace_angles

from eigengame.estimator import merging
from eigengame.estimator.inputs import checked_source, refuse_prepared
from eigengame.estimator.uncertified import NULL
from eigengame.metrics import angular_error
from eigengame.model import Model
from eigengame.monitoring.limits import (
    ControlLimits,
    effective_rows,
    reference_limits,
    theoretical_limits,
)
from eigengame.monitoring.remainder import remainder_of
from eigengame.monitoring.result import Monitoring
from eigengame.monitoring.statistics import Statistics, statistics_of
from eigengame.solver.certificates.tolerance import judged_tolerance

if TYPE_CHECKING:
    from eigengame.estimator.fitted import FittedPCA

SKEW = 1e-4
"""Largest error of the inner products of components: far above rounding in float32."""

LEVEL = 32
"""Share of the largest variance, in units of the precision of the fit, below which a variance is rounding."""

VALUES = 2**22
"""Numbers of a block of rows: the statistics of a row take several times its memory."""


def control_limits(estimator: FittedPCA, X: Any, confidence: float) -> ControlLimits:
    """Return limits by the rows X, or by theory if X is None; see `FittedPCA.control_limits`."""
    now = copy.copy(estimator)
    _check_confidence("confidence", confidence)
    if X is not None:
        blocks = list(_statistics(now, X, None))
        t2, spe = (np.concatenate([block[i] for block in blocks]) for i in (0, 1))
        known = ~np.isnan(t2)  # the others were skipped
        return reference_limits(t2[known], spe[known], float(confidence))
    result = now._result
    assert result is not None
    if not result.options.center:
        raise ValueError(
            "center=False: the distributions of T2 and SPE are known for rows about their mean only. Take the "
            "limits from reference rows, limits=pca.control_limits(rows), or limits=None for statistics without "
            "limits."
        )
    used = _used(now)
    variance, values = result.explained_variance[used], result.singular_values[used]
    total = float(values[0] ** 2 / variance[0]) + 1
    rows = effective_rows(result.rows, total, result.options.forget)
    remainder = remainder_of(result, used)
    return theoretical_limits(int(used.sum()), rows, remainder, float(confidence))


def monitored_blocks(
    estimator: FittedPCA, X: Any, limits: Any, reference: Any, size: int | None
) -> Iterator[Monitoring]:
    """Iterate over the statistics of X; see `FittedPCA.monitor`."""
    now = copy.copy(estimator)  # of one moment: another thread may be in `partial_fit`
    if isinstance(limits, Real) and not isinstance(limits, bool):
        limits = control_limits(now, None, _check_confidence("limits", limits))
    elif limits is not None and not isinstance(limits, ControlLimits):
        raise ValueError(
            f"limits={limits!r}: give a confidence such as 0.99, the result of control_limits, or None."
        )
    used, tolerance = _used(now), judged_tolerance(now)
    angles = subspace = None
    if reference is not None:
        angles, subspace = _angles(now, reference)
    opened = now.certificate_.open_components(tolerance.angle)
    names = getattr(now, "feature_names_in_", None)
    for found in _statistics(now, X, size):
        yield Monitoring(
            *found,
            limits=limits,
            angles=None if angles is None else angles.copy(),
            subspace_angle=subspace,
            unused=tuple(np.flatnonzero(~used).tolist()),
            uncertified=tuple(np.flatnonzero(used & opened).tolist()),
            tolerance=tolerance.angle,
            feature_names=None if names is None else [str(name) for name in names],
        )


def monitored(estimator: FittedPCA, X: Any, limits: Any, reference: Any) -> Monitoring:
    """Return the statistics of all rows of X."""
    blocks = list(monitored_blocks(estimator, X, limits, reference, None))
    if len(blocks) == 1:
        return blocks[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in Statistics._fields
    }
    return replace(blocks[0], **arrays)


def _statistics(estimator: FittedPCA, X: Any, size: int | None) -> Iterator[Statistics]:
    """Iterate over the statistics of blocks of rows; of one empty block if there are no rows."""
    source = checked_source(estimator, X, reset=False)
    refuse_prepared(estimator, source)
    source = source.in_float64()
    model = _model(estimator)
    d = source.shape[1]
    most = max(1, min(4096, VALUES // d)) if size is None else size
    begin = 0
    for block in source.blocks(0, min(most, source.block_rows or most)):
        yield statistics_of(model, block, source.name, begin)
        begin += len(block)
    if not begin:
        yield Statistics(np.zeros(0), np.zeros(0), np.zeros((0, d)), np.zeros((0, d)))


def _model(estimator: FittedPCA) -> Model:
    """Return the components that have variance."""
    model, used = estimator._model(), _used(estimator)
    components = model.components.astype(np.float64)
    overlaps = components @ components.T
    skew = float(np.abs(overlaps - np.eye(len(components))).max())
    if not skew <= SKEW:
        raise ValueError(
            f"the components are not orthonormal (products are off by {skew:.2g}), so that T2 and SPE are not "
            "defined: fit with algorithm='auto', 'remembered' or 'exact'."
        )
    # Orthonormal in float64, so that contributions add up to the statistics.
    sizes, axes = eigh(overlaps)
    components = (axes / np.sqrt(sizes)) @ axes.T @ components
    return model._replace(components=components[used], variance=model.variance[used])


def _used(estimator: FittedPCA) -> np.ndarray:
    """Return which components have more variance than rounding causes, shape (k,)."""
    assert estimator._result is not None
    variance = np.asarray(estimator.explained_variance_, np.float64)
    eps = float(np.finfo(estimator._result.options.dtype).eps)
    used: np.ndarray = variance > max(NULL, LEVEL * eps) * variance.max(initial=0)
    if not used.any():
        raise ValueError(
            "no component has variance, because all rows of the fit are equal: fit rows that vary."
        )
    return used


def _angles(estimator: FittedPCA, reference: Any) -> tuple[np.ndarray, float]:
    """Return the angle of each component to the reference, and the largest between their spans."""
    theirs = getattr(reference, "components_", None)
    if theirs is None:
        raise ValueError(
            f"reference={reference!r}: give a fitted model, such as copy.deepcopy(pca) or one that was loaded."
        )
    mine = estimator.components_
    if theirs.shape != mine.shape:
        raise ValueError(
            f"reference has {theirs.shape[0]} components of {theirs.shape[1]} features, but the model has "
            f"{mine.shape[0]} of {mine.shape[1]}: give a model with the same n_components and features."
        )
    merging.refuse_other_preparation(
        estimator._preparation, getattr(reference, "_preparation", None)
    )
    names = [getattr(one, "feature_names_in_", None) for one in (estimator, reference)]
    theirs = np.asarray(theirs, np.float64)
    if names[0] is not None and names[1] is not None:
        order = merging.feature_order(names[0], names[1])
        theirs = theirs if order is None else theirs[:, order]
    mine = np.asarray(mine, np.float64)
    return angular_error(mine, theirs), float(subspace_angles(mine.T, theirs.T).max())


def _check_confidence(name: str, value: Any) -> float:
    """Return a confidence in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name}={value!r}: give a confidence between 0 and 1, such as 0.99.")
    return float(value)
