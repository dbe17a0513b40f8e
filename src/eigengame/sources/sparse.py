"""SciPy sparse matrices: entries travel as they are, nothing is made dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from scipy import sparse

from eigengame.game.sparse_rows import SparseRows


class SparseSource:
    """Batches of a sparse matrix, all with room for as many entries as the fullest needs.

    Parameters
    ----------
    data : SciPy sparse matrix or array of shape (n, d)
        Read by rows: anything but CSR is converted once.
    size : int
        Rows for each batch.
    dtype : dtype
        Precision of the batches.
    weights : array of shape (n,), optional
    """

    def __init__(self, data: Any, size: int, dtype: Any, weights: np.ndarray | None = None) -> None:
        self.data = sparse.csr_array(data)
        self.size, self.dtype, self.weights = size, dtype, weights
        starts = np.arange(0, self.data.shape[0], size)
        ends = np.minimum(starts + size, self.data.shape[0])
        counts = self.data.indptr[ends] - self.data.indptr[starts]
        self.room = max(int(counts.max(initial=1)), 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.data.shape[0], self.data.shape[1]

    def __call__(self) -> Iterator[SparseRows]:
        """Give the batches of one pass, in order."""
        for begin in range(0, self.data.shape[0], self.size):
            yield self.batch(begin)

    def values(self, begin: int) -> np.ndarray:
        """Return the entries from row `begin` on, up to a batch of rows, as they are."""
        end = min(begin + self.size, self.data.shape[0])
        return np.asarray(self.data.data[self.data.indptr[begin] : self.data.indptr[end]])

    def batch(self, begin: int) -> SparseRows:
        """Return the batch that starts at row `begin`."""
        end = min(begin + self.size, self.data.shape[0])
        pointers = self.data.indptr[begin : end + 1]
        count = int(pointers[-1] - pointers[0])
        entries = np.zeros(self.room, self.dtype)
        row = np.full(self.room, self.size - 1, np.int32)
        column = np.zeros(self.room, np.int32)
        entries[:count] = self.data.data[pointers[0] : pointers[-1]]
        column[:count] = self.data.indices[pointers[0] : pointers[-1]]
        row[:count] = np.repeat(np.arange(end - begin, dtype=np.int32), np.diff(pointers))
        weights = np.zeros(self.size, self.dtype)
        weights[: end - begin] = 1 if self.weights is None else self.weights[begin:end]
        return SparseRows(
            jax.device_put(entries),
            jax.device_put(row),
            jax.device_put(column),
            jax.device_put(weights),
            features=self.data.shape[1],
        )
