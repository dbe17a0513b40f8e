"""Sparse rows on the host: products by SciPy, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigengame._system.blas_threads import blas_threads
from eigengame.game.rows import SampleRows
from eigengame.linalg.products import full_product

SMALL = 2**21
"""Multiplications below which a product runs on one thread."""


@dataclass(frozen=True)
class CSRRows(SampleRows):
    r"""Sparse rows in compressed format, in host memory. All arrays are those of NumPy.

    On a CPU SciPy multiplies sparse rows several times faster than XLA, which gathers all products before it adds
    them. Such rows are not given to compiled functions.

    Parameters
    ----------
    values : csr_array of shape (m, d)
        $Z$: rows multiplied by the roots of their weights, without duplicate entries.
    roots : array of shape (m,)
        Square roots of the weights.
    mean : array of shape (d,), optional
        The mean of the rows if it is already known.
    """

    values: csr_array
    roots: np.ndarray
    mean: np.ndarray | None = None  # type: ignore[assignment]

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return int(self.values.shape[1])

    def scores(self, players: Any) -> Any:
        r"""Return $Z V^\top$. Each sum runs over the entries of a row in their order."""
        dense = np.ascontiguousarray(players.T)
        found = np.empty((len(self.roots), dense.shape[1]), np.result_type(self.values, dense))

        def multiply(begin: int, part: csr_array) -> None:
            found[begin : begin + part.shape[0]] = part @ dense

        self._in_parts(multiply, dense.shape[1])
        return found

    def gram(self, left: Any, right: Any) -> Any:
        """Return the inner products of two arrays of scores."""
        return full_product(left.T, right)

    def directions(self, scores: Any) -> Any:
        r"""Return $Y^\top Z$, in column-major order. Sums run over the rows of each part, then over the parts."""
        scores = np.ascontiguousarray(scores)

        def multiply(begin: int, part: csr_array) -> np.ndarray:
            return np.asarray(part.T @ scores[begin : begin + part.shape[0]])

        total, *others = self._in_parts(multiply, scores.shape[1])
        for other in others:
            total += other
        return total.T

    def dense(self) -> Any:
        """Return $Z$ as a dense array, shape (m, d)."""
        return self.values.toarray()

    def constant(self) -> Any:
        """Return the scores of a feature that is always 1, shape (m, 1)."""
        return self.roots[:, None]

    def row_numbers(self) -> np.ndarray:
        """Return the row of each entry, shape (nnz,)."""
        return np.repeat(np.arange(len(self.roots)), np.diff(self.values.indptr))

    def column_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of the columns, weights counted, and of their squares, shape (d,) each, in float64."""
        values, d = self.values, self.width
        entries = values.data.astype(np.float64)
        weighted = entries * self.roots[self.row_numbers()] if (self.roots != 1).any() else entries
        return (
            np.bincount(values.indices, weighted, minlength=d),
            np.bincount(values.indices, entries**2, minlength=d),
        )

    def row_squares(self) -> np.ndarray:
        """Return the sum of squares of each row in float64, shape (m,)."""
        squares = self.values.data.astype(np.float64) ** 2
        return np.bincount(self.row_numbers(), squares, minlength=len(self.roots))

    @cached_property
    def _parts(self) -> list[tuple[int, csr_array]]:
        """Parts of the rows with about equally many entries, one for each thread, with their first rows."""
        pointers, (m, d) = self.values.indptr, self.values.shape
        count = min(blas_threads(), m)
        shares = np.arange(1, count) * (pointers[-1] / count)
        ends = [0, *np.searchsorted(pointers, shares).tolist(), m]
        parts = []
        for begin, end in zip(ends[:-1], ends[1:], strict=True):
            held = slice(pointers[begin], pointers[end])
            own = pointers[begin : end + 1] - pointers[begin]
            entries = (self.values.data[held], self.values.indices[held], own)
            parts.append((begin, csr_array(entries, shape=(end - begin, d))))
        return parts

    def _in_parts(self, multiply: Callable[[int, csr_array], Any], width: int) -> list[Any]:
        """Return the results of a function of a first row and the rows of a part."""
        # The sum over parts costs as much as a few entries of each column.
        few = 4 * self.values.nnz < self.width
        if few or self.values.nnz * width < SMALL or len(self._parts) == 1:
            return [multiply(0, self.values)]
        others = [_pool().submit(multiply, *part) for part in self._parts[1:]]
        return [multiply(*self._parts[0]), *(other.result() for other in others)]


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads of the products; SciPy releases the lock of the interpreter."""
    return ThreadPoolExecutor(max(1, blas_threads() - 1), thread_name_prefix="sparse products")
