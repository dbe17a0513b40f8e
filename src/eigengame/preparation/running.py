"""Unit variance in one pass: the standard deviations of the rows so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation._step import Step
from eigengame.preparation.cells import weights_of
from eigengame.preparation.scale import Scale, divided
from eigengame.preparation.spread import Spread, add, deviation, no_rows
from eigengame.sources import Block

EARLY = 256
"""First rows of a pass that share one standard deviation: that of fewer is no use."""

AT_ONCE = 2**18
"""Numbers whose running sums are held at a time."""


@dataclass(frozen=True, eq=False)
class Running(Step):
    """Divide each row by the standard deviations of the rows up to it, itself among them.

    The first 256 rows are divided by the standard deviations of these 256. Sums are added row by row in
    the order of the data, so a row comes out the same whatever the blocks. Rows of weight 0 pass by.

    A pass from a later row on begins at the first row all the same. What a model keeps is a `Scale`: the
    standard deviations when the pass ended.

    Parameters
    ----------
    row : int
        Where the pass is.
    seen : Spread, optional
        Of the rows before.
    early : array of shape (d,), optional
        Standard deviations of the first rows.
    """

    kind: ClassVar[str] = "running scale"
    floating: ClassVar[bool] = True
    ahead: ClassVar[int] = EARLY

    row: int = 0
    seen: Spread | None = None
    early: np.ndarray | None = None

    def facts(self) -> dict[str, Any]:
        """Return what tells it from other steps: where a pass is does not."""
        return {"kind": self.kind, "early": EARLY}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return nothing: what it has seen belongs to a pass."""
        return {}

    def begun(self, first: Block) -> Running:
        """Return the step before the first row, knowing the first rows."""
        return Running(0, no_rows(first), add(None, first).deviation())

    def apply(self, block: Block) -> Block:
        """Return the block made ready, as rows that come next."""
        return self.take(block)[1]

    def take(self, block: Block) -> tuple[Running, Block]:
        """Return the step after these rows, and the rows divided."""
        assert self.seen is not None
        assert self.early is not None
        values, early = block.values, min(max(EARLY - self.row, 0), len(block))
        if issparse(values):
            seen, deviations = _sparse_rows(self.seen, block)
            until = values.indptr[early]
            deviations[:until] = self.early[values.indices[:until]]
        else:
            seen, deviations = _dense_rows(self.seen, block)
            deviations[:early] = self.early
        after = Running(self.row + len(block), seen, self.early)
        return after, Block(divided(values, deviations), block.weights)

    def settled(self) -> Scale:
        """Return the division by the standard deviations of the rows so far."""
        if self.seen is None:
            raise ValueError("scale='running' knows no standard deviation before a pass is made.")
        return Scale(self.seen.deviation())


def _dense_rows(seen: Spread, block: Block) -> tuple[Spread, np.ndarray]:
    """Return the spread after these rows, and the deviations (m, d) at each of them."""
    values, weights = block.values, weights_of(block)[:, None]
    found = np.empty(values.shape, np.result_type(values.dtype, np.float32))
    piece = max(AT_ONCE // values.shape[1], 1)
    for begin in range(0, len(values), piece):
        rows = slice(begin, begin + piece)
        away = values[rows] - seen.origin
        weight = _running(np.full((1, 1), seen.weight), weights[rows])
        sums = _running(seen.sums[None], weights[rows] * away)
        squares = _running(seen.squares[None], weights[rows] * away**2)
        found[rows] = deviation(seen.origin, weight, weight, sums, squares)
        total = weight[-1, 0]
        seen = Spread(seen.origin, float(total), total, sums[-1].copy(), squares[-1].copy())
    return seen, found


def _running(before: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return running sums over rows, from what was there before."""
    return np.cumsum(np.concatenate([before, more]), axis=0)[1:]


def _sparse_rows(seen: Spread, block: Block) -> tuple[Spread, np.ndarray]:
    """Return the spread after these rows, and the deviations (nnz,) at each stored number."""
    values, origin, total = block.values, seen.origin, seen.weight
    stored, sums, squares = seen.stored.copy(), seen.sums.copy(), seen.squares.copy()
    found = np.empty(values.nnz, np.result_type(values.dtype, np.float32))
    for row, weight in enumerate(weights_of(block)):
        held = slice(values.indptr[row], values.indptr[row + 1])
        at = values.indices[held]
        away = values.data[held] - origin[at]
        total += float(weight)
        stored[at] += weight
        sums[at] += weight * away
        squares[at] += weight * away**2
        found[held] = deviation(origin[at], total, stored[at], sums[at], squares[at])
    return Spread(origin, total, stored, sums, squares), found
