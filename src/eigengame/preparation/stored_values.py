"""The numbers that a block stores, dense or sparse, so that a step is one formula for both.

Dense values store all of them, as an array (m, d); CSR values store `data`, as an array (nnz,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from eigengame.sources import Block


def tidy(block: Block) -> Block:
    """Return the block with an array, or a CSR array that stores each place once."""
    if not sparse.issparse(block.values):
        return Block(np.asarray(block.values), block.weights)
    values = sparse.csr_array(block.values)
    if not values.has_canonical_format:
        values = values.copy()
        values.sum_duplicates()
    return Block(values, block.weights)


def in_float64(block: Block) -> Block:
    """Return the block with its numbers in float64; a block that has them so is returned as it is."""
    numbers = cells(block.values)
    if numbers.dtype == np.float64:
        return block
    return Block(with_cells(block.values, numbers.astype(np.float64)), block.weights)


def cells(values: Any) -> np.ndarray:
    """Return the stored numbers; not to be written to."""
    return values.data if sparse.issparse(values) else values


def with_cells(values: Any, numbers: np.ndarray) -> Any:
    """Return values of the same shape that store other numbers."""
    if not sparse.issparse(values):
        return numbers
    return sparse.csr_array((numbers, values.indices, values.indptr), shape=values.shape)


def by_column(values: Any, figures: np.ndarray) -> np.ndarray:
    """Return one figure for each column (d,) beside the stored numbers."""
    return figures[values.indices] if sparse.issparse(values) else figures


def by_row(values: Any, figures: np.ndarray) -> np.ndarray:
    """Return one figure for each row (m,) beside the stored numbers."""
    if sparse.issparse(values):
        return np.repeat(figures, np.diff(values.indptr))
    return figures[:, None]


def column_sums(values: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the sums (d,) of numbers that stand where the stored ones do."""
    if sparse.issparse(values):
        return np.bincount(values.indices, numbers, minlength=values.shape[1])
    return numbers.sum(axis=0, dtype=np.float64)


def row_sums(values: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the sums (m,) of numbers that stand where the stored ones do."""
    if sparse.issparse(values):
        row = by_row(values, np.arange(values.shape[0]))
        return np.bincount(row, numbers, minlength=values.shape[0])
    return numbers.sum(axis=1, dtype=np.float64)


def first_place(values: Any, chosen: np.ndarray) -> tuple[int, int]:
    """Return row and column of the first stored number that is chosen."""
    at = int(np.flatnonzero(chosen)[0])
    if not sparse.issparse(values):
        return divmod(at, values.shape[1])
    return int(np.searchsorted(values.indptr, at, side="right")) - 1, int(values.indices[at])


def weights_of(block: Block) -> np.ndarray:
    """Return how often each row counts, shape (m,)."""
    return np.ones(len(block)) if block.weights is None else np.asarray(block.weights, np.float64)
