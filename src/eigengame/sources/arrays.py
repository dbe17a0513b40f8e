"""Arrays in memory or mapped from disk: a few rows are copied at a time, never the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from eigengame.game.rows import DenseRows


@dataclass(frozen=True)
class ArraySource:
    """Batches of a two-dimensional array.

    Parameters
    ----------
    data : array of shape (n, d)
    size : int
        Rows for each batch; the last one is filled up with rows of weight 0.
    dtype : dtype
        Precision of the batches.
    weights : array of shape (n,), optional
    origin : array of shape (d,), optional
        Subtracted as rows are read, to keep digits where the mean is far from zero.
    """

    data: np.ndarray
    size: int
    dtype: Any
    weights: np.ndarray | None = None
    origin: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.data.shape[0], self.data.shape[1]

    def __call__(self) -> Iterator[DenseRows]:
        """Give the batches of one pass, in order."""
        for begin in range(0, len(self.data), self.size):
            yield self.batch(begin)

    def values(self, begin: int) -> np.ndarray:
        """Return the numbers from row `begin` on, up to a batch of them, as they are."""
        return self.data[begin : begin + self.size]

    def batch(self, begin: int) -> DenseRows:
        """Return the batch that starts at row `begin`."""
        block = self.values(begin)
        roots = self._roots(begin, len(block))
        if self.origin is not None:
            block = np.subtract(block, self.origin, dtype=self.dtype)
        elif block.dtype != self.dtype or not block.flags.c_contiguous:
            block = np.ascontiguousarray(block, dtype=self.dtype)
        if self.weights is not None:
            block = block * roots[: len(block), None]
        if len(block) < self.size:
            block = np.pad(block, ((0, self.size - len(block)), (0, 0)))
        return DenseRows(jax.device_put(np.asarray(block)), jax.device_put(roots))

    def _roots(self, begin: int, rows: int) -> np.ndarray:
        """Return the roots of a batch's weights: 1 for plain rows, 0 for padding."""
        roots = np.zeros(self.size, self.dtype)
        roots[:rows] = 1 if self.weights is None else np.sqrt(self.weights[begin : begin + rows])
        return roots
