"""Selection of the most variable features of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from eigengame.preparation._base import BadValue, PreparationStep, TrainingData
from eigengame.preparation.column_selection import ColumnSelection
from eigengame.preparation.stored_values import (
    column_sums,
    per_row,
    row_weights,
    stored,
)
from eigengame.sources import Block, SourceError

BINS = 20
"""Bins of the mean, within which dispersions are compared."""

EQUAL = 1e-10
"""Logarithms of dispersions within a bin that spread by less than this are equal up to rounding."""

LARGEST_LOGARITHM = 30.0
"""Larger values are no logarithms of counts: e^30 is 1e13."""


class Sums(NamedTuple):
    """Weighted sums of the rows seen so far.

    Attributes
    ----------
    weight : float
    sums, squares : arrays of shape (d,)
    fractions : bool
        Whether a value was not an integer.
    """

    weight: float
    sums: np.ndarray
    squares: np.ndarray
    fractions: bool = False

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of each feature, with ddof=1."""
        mean = self.sums / self.weight
        variance = np.maximum(self.squares / self.weight - mean**2, 0)
        return mean, variance * (self.weight / (self.weight - 1))


@dataclass(frozen=True, eq=False)
class TopVariable(PreparationStep):
    """Keep the features that vary most. Once learnt, it is a `ColumnSelection`.

    Parameters
    ----------
    count : int
        Number of features to keep. Features that are equal to the last one are kept too.
    residuals : bool
        Whether values are Pearson residuals, of which the variance is compared. Otherwise they are logarithms
        log(1 + x), and the normalised dispersion of x is compared, as in Seurat; see `normalised_dispersions`.
    given : bool
        Whether the logarithms were not computed here, so that it is checked that they can be logarithms.
    """

    kind: ClassVar[str] = "top variable"

    count: int
    residuals: bool = False
    given: bool = False

    def learn(self, source: TrainingData) -> PreparationStep:
        """Return the selection of the features, in their order in the data, from one pass."""
        d = source.shape[1]
        add = _add_values if self.residuals else _add_logarithms
        sums: Sums = source.fold(add, Sums(0.0, np.zeros(d), np.zeros(d)), "top_variable=")
        if sums.weight <= 1:
            raise SourceError(f"{source.name}: top_variable needs at least two rows.")
        if self.given and not sums.fractions:
            raise SourceError(
                f"{source.name}: all values are integers, but top_variable without counts= expects logarithms: "
                "give counts='log-normalise' for raw counts."
            )
        mean, variance = sums.moments()
        scores = variance if self.residuals else normalised_dispersions(mean, variance)
        varying = np.flatnonzero(~np.isnan(scores) & (variance > 0))
        if len(varying) < self.count:
            raise SourceError(
                f"{source.name}: top_variable={self.count}, but only {len(varying)} of {d} features vary: give "
                "at most that number."
            )
        least = np.sort(scores[varying])[-self.count]
        indices = varying[scores[varying] >= least]
        names = source.feature_names
        unique = names is not None and len(set(names)) == len(names)
        wanted = [str(names[i]) if names and unique else int(i) for i in indices]
        return ColumnSelection(wanted, indices.astype(np.int64))

    def apply(self, block: Block) -> Block:
        """Raise, because only a learnt selection can be applied."""
        raise NotImplementedError("top_variable is not learnt yet: use learn(source).apply(block).")


def normalised_dispersions(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the dispersion of each feature relative to features with a similar mean.

    This is the rule of Seurat, as in ``scanpy.pp.highly_variable_genes(flavor="seurat")``: logarithms of the
    dispersion (variance over mean) are standardised within 20 bins of equal width of log(1 + mean).

    Parameters
    ----------
    mean, variance : arrays of shape (d,)
        Of counts, not of their logarithms; the variance has ddof=1.

    Returns
    -------
    array of shape (d,)
        NaN for features without variation, and for features whose bin has no others than equal ones: nothing
        orders these, and scanpy leaves them out too.
    """
    centre = np.where(mean == 0, 1e-12, mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        dispersion = np.log(np.where(variance > 0, variance / centre, np.nan))
    level = np.log1p(centre)
    bins = _bins_of(level)
    result = np.full(len(mean), np.nan)
    for one in np.unique(bins):
        inside = (bins == one) & ~np.isnan(dispersion)
        values = dispersion[inside]
        if len(values) == 1:
            result[inside] = 1.0  # there is nothing to compare with
        elif len(values) and (spread := values.std(ddof=1)) > EQUAL:
            result[inside] = (values - values.mean()) / spread
    return result


def _bins_of(level: np.ndarray) -> np.ndarray:
    """Return the bin of each number, of `BINS` bins of equal width that are closed on the right."""
    low, high = level.min(), level.max()
    if low == high:
        return np.zeros(len(level), np.int64)
    return np.searchsorted(np.linspace(low, high, BINS + 1)[1:-1], level, side="left")


def _add_values(sums: Sums, block: Block) -> Sums:
    """Add one block of residuals, whose mean is close to 0."""
    return _added(sums, block, stored(block.values).astype(np.float64), fractions=True)


def _add_logarithms(sums: Sums, block: Block) -> Sums:
    """Add one block of logarithms, as the numbers of which they are logarithms."""
    numbers = stored(block.values)
    if numbers.size and (numbers.min() < 0 or numbers.max() > LARGEST_LOGARITHM):
        raise BadValue(
            block,
            (numbers < 0) | (numbers > LARGEST_LOGARITHM),
            f"but top_variable expects logarithms of counts, from 0 to {LARGEST_LOGARITHM:g}: give raw counts with "
            "counts='log-normalise', or columns= for other data.",
        )
    fractions = sums.fractions or bool(np.any(numbers != np.rint(numbers)))
    return _added(sums, block, np.expm1(numbers).astype(np.float64), fractions)


def _added(sums: Sums, block: Block, numbers: np.ndarray, fractions: bool) -> Sums:
    values, weights = block.values, row_weights(block)
    weighted = numbers * per_row(values, weights)
    return Sums(
        sums.weight + float(weights.sum()),
        sums.sums + column_sums(values, weighted),
        sums.squares + column_sums(values, weighted * numbers),
        fractions,
    )
