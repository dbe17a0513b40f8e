"""Where rows come from: each source gives batches of one shape and knows nothing of players."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigengame.sources.arrays import ArraySource as ArraySource
from eigengame.sources.sparse import SparseSource as SparseSource

FAR = 30.0
"""Standard deviations: beyond so many, a mean costs float32 scores digits that matter."""


def far_origin(data: Any, rows: int, dtype: Any) -> np.ndarray | None:
    """Return the mean of the first rows where it is far from zero, to be subtracted on reading."""
    if issparse(data):
        return None
    few = max(16, 2**22 // max(data.shape[1], 1))
    block = np.asarray(data[: min(rows, 1024, few)], np.float64)
    mean, spread = block.mean(axis=0), float(block.var(axis=0).sum())
    if float(np.sum(mean**2)) <= FAR**2 * spread:
        return None
    # In the precision of the batches, so that what is subtracted is what is added back.
    return mean.astype(dtype).astype(np.float64)


def as_source(
    data: Any, size: int, *, dtype: Any, weights: Any = None, origin: Any = None
) -> ArraySource | SparseSource:
    """Return the source for an array or a SciPy sparse matrix.

    Parameters
    ----------
    data : array of shape (n, d), memory map, or SciPy sparse matrix
    size : int
        Rows for each batch.
    dtype : dtype
        Precision of the batches.
    weights : array of shape (n,), optional
        How often each row counts.
    origin : array of shape (d,), optional
        Subtracted from every dense row as it is read.
    """
    kept = None if weights is None else np.asarray(weights)
    if issparse(data):
        return SparseSource(data, size, dtype, kept)
    return ArraySource(np.asanyarray(data), size, dtype, kept, origin)
