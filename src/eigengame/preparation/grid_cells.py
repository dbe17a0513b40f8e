"""Cells of the grid of a field: points of the grid that never have a value, such as land, are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from eigengame.preparation._base import BadValue, PreparationStep, TrainingData
from eigengame.sources import Block, Source, SourceError
from eigengame.sources._grid import Grid

USED, EMPTY, IGNORED = 0, 1, 2
"""Codes of cells: features; cells without a value in any row; cells of weight 0, whatever their values."""


@dataclass(frozen=True, eq=False)
class GridCells(PreparationStep):
    """Keep the points of a grid that have values.

    Parameters
    ----------
    grid : sequence of mapping
        Variables, dimensions and coordinates, as `Grid.facts` returns them.
    all_rows : bool
        Whether empty cells are found by a pass over all rows. Otherwise they are those of the first row, and a
        value in such a cell of a later row raises.
    codes : uint8 array of shape (d,), optional
        `USED`, `EMPTY` or `IGNORED`. Before learning only ignored cells are known.
    """

    kind: ClassVar[str] = "grid cells"

    grid: Sequence[Mapping[str, Any]]
    all_rows: bool = False
    codes: np.ndarray | None = None

    def __post_init__(self) -> None:
        size = Grid.from_facts(self.grid).size
        if self.codes is not None and self.codes.shape != (size,):
            raise ValueError(f"codes of cells have shape {self.codes.shape}, not ({size},)")

    @property
    def used(self) -> np.ndarray:
        """Whether each cell is a feature, shape (d,)."""
        assert self.codes is not None
        return self.codes == USED

    def learn(self, source: TrainingData) -> GridCells:
        """Return the step with the empty cells, from the first row or from one pass."""
        if self.all_rows:
            empty = source.fold(_add, None, "missing='mean' or 'skip' of a field")
        else:
            first = next(iter(source.blocks(0, 1)), None)
            if first is None:
                raise SourceError(f"{source.name} has no rows.")
            empty = _empty(first.values)
        ignored = np.zeros(empty.shape, bool) if self.codes is None else self.codes == IGNORED
        if (empty | ignored).all():
            where = "any row" if self.all_rows else "the first row"
            fix = (
                "check its fill value"
                if self.all_rows
                else "give missing='mean' or 'skip' (--missing), or leave out the row"
            )
            raise SourceError(f"{source.name} has no value in {where}: {fix}.")
        codes = np.where(ignored, IGNORED, np.where(empty, EMPTY, USED)).astype(np.uint8)
        return replace(self, codes=codes)

    def apply(self, block: Block) -> Block:
        """Return the block with the cells that are used."""
        assert self.codes is not None
        if not self.codes.any():
            return block
        empty = self.codes == EMPTY
        values = np.asarray(block.values)
        if empty.any():
            there = values[:, np.flatnonzero(empty)]
            # Integers have no NaN, so that each of their values is one.
            present = ~np.isnan(there) if there.dtype.kind == "f" else np.ones(there.shape, bool)
            if present.any():
                bad = np.zeros(values.shape, bool)
                bad[:, empty] = present
                raise BadValue(block, bad, self._problem())
        return Block(np.take(values, np.flatnonzero(self.used), axis=1), block.weights)

    def _problem(self) -> str:
        """Return what to do about a value in a cell that was empty."""
        if self.all_rows:
            return (
                "in a cell without any value in the fit: mask it, for example by data.where(mask)."
            )
        return (
            "in a cell that has no value in the first row of the fit: give missing='mean' or 'skip' (--missing) "
            "for values that are missing in some rows, or mask the cell in all rows."
        )

    def check_source(self, source: Source) -> None:
        """Raise if a source has another grid."""
        if source.grid is None:
            return
        difference = Grid.from_facts(self.grid).difference(source.grid)
        if difference is not None:
            raise SourceError(
                f"{source.name} has {difference}: give data on the grid of the fit, for example by "
                "data.sel or data.interp_like."
            )

    def expand(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., d') of the used cells on the whole grid (..., d), with NaN elsewhere."""
        used = self.used
        dtype = np.result_type(values.dtype, np.float32)
        full = np.full((*values.shape[:-1], len(used)), np.nan, dtype)
        full[..., used] = values
        return full

    def width(self, d: int) -> int:
        """Return the number of cells that are used."""
        return int(self.used.sum())

    def before(self, column: int) -> int:
        """Return the position of a feature on the whole grid."""
        return int(np.flatnonzero(self.used)[column])


def _empty(values: np.ndarray) -> np.ndarray:
    """Return whether each column of rows (m, d) has no value."""
    if values.dtype.kind != "f":
        return np.zeros(values.shape[1], bool)
    missing: np.ndarray = np.isnan(values).all(axis=0)
    return missing


def _add(carry: np.ndarray | None, block: Block) -> np.ndarray:
    """Return whether each column has no value in this block nor in those before."""
    empty = _empty(block.values)
    return empty if carry is None else carry & empty
