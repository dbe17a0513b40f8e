"""Analytic Pearson residuals of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation._base import PreparationStep, TrainingData
from eigengame.preparation.column_selection import ColumnSelection
from eigengame.preparation.counts import check_counts, refuse_negative
from eigengame.preparation.stored_values import (
    column_sums,
    per_row,
    row_sums,
    row_weights,
    stored,
)
from eigengame.sources import Block, SourceError

THETA = 100.0
"""Default inverse overdispersion, as in scanpy."""


@dataclass(frozen=True, eq=False)
class PearsonResiduals(PreparationStep):
    r"""Replace counts by their Pearson residuals under a negative binomial model (Lause et al., 2021).

    For a row with total $n_i$, and a feature with the share $p_j$ of all counts of the fit, the expected count is
    $\mu_{ij} = n_i p_j$, and the residual is $(x_{ij} - \mu_{ij}) / \sqrt{\mu_{ij} + \mu_{ij}^2 / \theta}$,
    clipped at $\pm\sqrt{n}$ for $n$ rows of the fit. Rows and features without any count have residuals of 0.
    Residuals of zeros are not zeros, so rows become dense.

    Parameters
    ----------
    theta : float
        Inverse overdispersion of the counts; infinity means a Poisson model.
    clip : float, optional
        Learnt bound of the residuals: the square root of the number of rows.
    shares : array of shape (d,), optional
        Learnt share of each feature in the total of all counts.
    """

    kind: ClassVar[str] = "pearson"
    floating: ClassVar[bool] = True
    dense: ClassVar[bool] = True

    theta: float = THETA
    clip: float | None = None
    shares: np.ndarray | None = None

    @property
    def whole_rows(self) -> bool:
        """Whether a value depends on all features of its row, by the total of the row: always."""
        return True

    def learn(self, source: TrainingData) -> PearsonResiduals:
        """Return the step with the shares of the features and the number of rows, from one pass."""
        start = (np.zeros(source.shape[1]), 0.0)
        totals, rows = source.fold(_add, start, "counts='pearson'")
        if not totals.sum() > 0:
            raise SourceError(f"{source.name} has no counts above 0: there are no residuals.")
        return PearsonResiduals(self.theta, float(np.sqrt(rows)), totals / totals.sum())

    def apply(self, block: Block) -> Block:
        """Return the residuals of all features."""
        return self._residuals(block, None)

    def apply_and_select(self, block: Block, selection: ColumnSelection) -> Block:
        """Return the residuals of some features. The others only count for the totals of the rows."""
        return self._residuals(block, selection)

    def _residuals(self, block: Block, selection: ColumnSelection | None) -> Block:
        assert self.shares is not None
        assert self.clip is not None
        check_counts(block, self.kind)
        totals = row_sums(block.values, stored(block.values))
        shares = self.shares
        if selection is not None:
            block, shares = selection.apply(block), shares[selection.indices]
        counts = block.values.toarray() if issparse(block.values) else block.values
        dtype = np.result_type(counts.dtype, np.float32)
        expected = np.multiply.outer(totals.astype(dtype), shares.astype(dtype))
        residuals = np.subtract(counts, expected, dtype=dtype)
        deviations = np.sqrt(expected * (1 + expected / dtype.type(self.theta)))
        np.divide(residuals, deviations, out=residuals, where=deviations > 0)
        residuals[deviations == 0] = 0
        return Block(np.clip(residuals, -self.clip, self.clip, out=residuals), block.weights)


def _add(carry: tuple[np.ndarray, float], block: Block) -> tuple[np.ndarray, float]:
    """Add one block to the weighted totals of the features (d,) and the weight of the rows."""
    refuse_negative(block)
    totals, rows = carry
    values, weights = block.values, row_weights(block)
    weighted = stored(values) * per_row(values, weights)
    return totals + column_sums(values, weighted), rows + float(weights.sum())
