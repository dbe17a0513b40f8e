"""Sparse rows on the host: products by SciPy, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigengame._system.blas_threads import blas_threads
from eigengame._system.lazy import lazy
from eigengame._system.threads import in_threads
from eigengame.game.rows import SampleRows
from eigengame.linalg.csr_parts import SMALL, even_ranges, rows_of
from eigengame.linalg.products import full_product

LONGEST = 2**12
"""Largest number of rows whose entries of a column are added one after the other.

In float32 the error of a longer sum is large if rows repeat, since they are then rounded in the same direction.
"""


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
    mean: Any = None

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
        r"""Return $Y^\top Z$, in column-major order.

        A sum runs over at most `LONGEST` rows one after the other, then over these sums: see `sums_of_rows`.
        """
        scores = np.ascontiguousarray(scores)

        def multiply(begin: int, part: csr_array) -> np.ndarray:
            return np.asarray(part.T @ scores[begin : begin + part.shape[0]])

        return _added(self._in_parts(multiply, scores.shape[1])).T

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

    @lazy
    def _parts(self) -> list[list[tuple[int, csr_array]]]:
        """Parts of the rows with their first rows, a list for each thread.

        Threads have about equally many entries. If a column has more than `LONGEST` entries, parts have at most as
        many rows.
        """
        m = len(self.roots)
        long = m > LONGEST and np.bincount(self.values.indices).max(initial=0) > LONGEST
        return [
            [self._part(first, min(first + LONGEST, end)) for first in range(begin, end, LONGEST)]
            if long
            else [self._part(begin, end)]
            for begin, end in even_ranges(self.values, blas_threads())
        ]

    def _part(self, begin: int, end: int) -> tuple[int, csr_array]:
        """Return `begin` and the rows from there to `end`, which are not copied."""
        return begin, rows_of(self.values, begin, end)

    def _in_parts(self, multiply: Callable[[int, csr_array], Any], width: int) -> list[Any]:
        """Return the sum over the parts of each thread of a function of a first row and the rows of a part."""

        def run(parts: list[tuple[int, csr_array]]) -> Any:
            return _added(multiply(*part) for part in parts)

        # The sum over threads costs as much as a few entries of each column.
        few = self.values.nnz < 4 * self.width
        if few or self.values.nnz * width < SMALL:
            return list(map(run, self._parts))
        return in_threads(run, self._parts)


def sums_of_rows(size: int) -> tuple[int, int]:
    """Return how sums over a batch of `size` rows are computed: the rows of a sum, and the number of sums."""
    threads = max(min(blas_threads(), size), 1)
    return min(size, LONGEST), threads + size // LONGEST


def _added(arrays: Iterable[Any]) -> Any:
    """Return the sum of arrays, added to the first; None for functions without a result."""
    total, *others = arrays
    for other in others:
        if total is not None:
            total += other
    return total
