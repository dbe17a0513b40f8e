"""Stored values of dense and sparse blocks, so that a step is one formula for both.

A dense block stores an array (m, d). A CSR block stores its entries, an array (nnz,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from eigengame.sources import Block


def canonical(block: Block) -> Block:
    """Return the block with a NumPy array, or a CSR array without duplicate entries."""
    if not sparse.issparse(block.values):
        return Block(np.asarray(block.values), block.weights)
    values = sparse.csr_array(block.values)
    if not values.has_canonical_format:
        values = values.copy()
        values.sum_duplicates()
    return Block(values, block.weights)


def to_float64(block: Block) -> Block:
    """Return the block with its values in float64; it is copied only if necessary."""
    numbers = stored(block.values)
    if numbers.dtype == np.float64:
        return block
    return Block(with_stored(block.values, numbers.astype(np.float64)), block.weights)


def stored(values: Any) -> np.ndarray:
    """Return the stored values. Do not write to them."""
    return values.data if sparse.issparse(values) else values


def with_stored(values: Any, numbers: np.ndarray) -> Any:
    """Return a matrix of the same structure with other stored values."""
    if not sparse.issparse(values):
        return numbers
    return sparse.csr_array((numbers, values.indices, values.indptr), shape=values.shape)


def per_column(values: Any, numbers: np.ndarray) -> np.ndarray:
    """Return one number per column (d,) in a shape that broadcasts with the stored values."""
    return numbers[values.indices] if sparse.issparse(values) else numbers


def per_row(values: Any, numbers: np.ndarray) -> np.ndarray:
    """Return one number per row (m,) in a shape that broadcasts with the stored values."""
    if sparse.issparse(values):
        return np.repeat(numbers, np.diff(values.indptr))
    return numbers[:, None]


def column_sums(values: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the column sums (d,) of numbers at the positions of the stored values."""
    if sparse.issparse(values):
        return np.bincount(values.indices, numbers, minlength=values.shape[1])
    return numbers.sum(axis=0, dtype=np.float64)


def row_sums(values: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the row sums (m,) of numbers at the positions of the stored values."""
    if sparse.issparse(values):
        row = per_row(values, np.arange(values.shape[0]))
        return np.bincount(row, numbers, minlength=values.shape[0])
    return numbers.sum(axis=1, dtype=np.float64)


def first_position(values: Any, mask: np.ndarray) -> tuple[int, int]:
    """Return row and column of the first stored value for which a mask is True."""
    first = int(np.flatnonzero(mask)[0])
    if not sparse.issparse(values):
        return divmod(first, values.shape[1])
    return int(np.searchsorted(values.indptr, first, side="right")) - 1, int(values.indices[first])


def row_weights(block: Block) -> np.ndarray:
    """Return the sample weights (m,), which are 1 if the block has none."""
    return np.ones(len(block)) if block.weights is None else np.asarray(block.weights, np.float64)
