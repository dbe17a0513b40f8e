"""Dense rows on the host: products by NumPy, on all cores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eigengame._system.blas_threads import blas_threads
from eigengame._system.lazy import lazy
from eigengame._system.reused_memory import ReusedMemory
from eigengame._system.threads import in_threads
from eigengame.game.rows import SampleRows

LONGEST = 2**10
"""Largest number of rows whose products are added in the precision of the rows. Such sums are added in float64."""

FEW = 2**8
"""Rows whose squares are added at a time: as many as stay in the cache."""

SMALL = 2**22
"""Multiplications below which one thread is enough."""


@dataclass(frozen=True)
class HostRows(SampleRows):
    r"""Dense rows in host memory. All arrays are those of NumPy.

    They need no copy at an aligned address, nothing is compiled, and batches may have any length. Such rows are not
    given to compiled functions.

    Parameters
    ----------
    values : array of shape (m, d)
        $Z$: rows multiplied by the roots of their weights.
    roots : array of shape (m,)
        Square roots of the weights.
    mean : array of shape (d,), optional
        The mean of the rows if it is already known.
    memory : ReusedMemory
        For scores: new memory would take longer to fill than they take to compute.
    """

    values: np.ndarray
    roots: np.ndarray
    mean: Any = None
    memory: ReusedMemory = field(default_factory=ReusedMemory, repr=False, compare=False)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return int(self.values.shape[1])

    def scores(self, players: Any) -> Any:
        r"""Return $Z V^\top$."""
        shape = len(self.values), len(players)
        found = self.memory.empty(shape, np.result_type(self.values, players))

        def multiply(part: slice) -> None:
            np.matmul(self.values[part], players.T, out=found[part])

        self._in_parts(multiply, players.size)
        return found

    def gram(self, left: Any, right: Any) -> Any:
        """Return the inner products of two arrays of scores."""
        return self._over_rows(left, right)

    def centre(self, scores: Any, unit: Any, share: Any) -> Any:
        """Return scores about their mean, in the same array."""
        mean = self.gram(share, scores)

        def subtract(part: slice) -> None:
            scores[part] -= unit[part] * mean

        self._in_parts(subtract, scores.shape[1])
        return scores

    def with_row(self, scores: Any, row: Any) -> Any:
        """Return scores (m, k) and those of one more row (1, k)."""
        found = self.memory.empty((len(scores) + 1, scores.shape[1]), scores.dtype)
        found[:-1], found[-1] = scores, row[0]
        return found

    def directions(self, scores: Any) -> Any:
        r"""Return $Y^\top Z$."""
        return self._over_rows(scores, self.values)

    def _over_rows(self, left: Any, right: Any) -> Any:
        """Return `left.T @ right`, with sums as long as `longest_host_sum` states."""
        shape, kind = (left.shape[1], right.shape[1]), np.result_type(left, right)

        def multiply(part: slice) -> np.ndarray:
            product, total = np.empty(shape, kind), np.zeros(shape)
            for chunk in _chunks(part, LONGEST):
                total += np.matmul(left[chunk].T, right[chunk], out=product)
            return total

        total, *others = self._in_parts(multiply, math.prod(shape), len(left))
        for other in others:
            total += other
        return total.astype(kind, copy=False)

    def dense(self) -> Any:
        """Return $Z$, shape (m, d)."""
        return self.values

    def constant(self) -> Any:
        """Return the scores of a feature that is always 1, shape (m, 1)."""
        return self.roots[:, None]

    def column_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of the columns, weights counted, and of their squares, shape (d,) each, in float64."""
        sums, squares, _ = self._sums
        return sums, squares

    def row_squares(self) -> np.ndarray:
        """Return the sum of squares of each row, shape (m,)."""
        return self._sums[2]

    @lazy
    def _sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute sums of the columns and of their squares, and sums of squares of the rows, in one go."""
        lengths2 = np.empty(len(self.values), self.values.dtype)

        def add(part: slice) -> np.ndarray:
            sums = np.zeros((2, self.width))
            for chunk in _chunks(part, FEW):
                values = self.values[chunk]
                sums[0] += self.roots[chunk] @ values
                sums[1] += np.einsum("rf,rf->f", values, values)
                np.einsum("rf,rf->r", values, values, out=lengths2[chunk])
            return sums

        sums, squares = np.sum(self._in_parts(add, 2 * self.width), axis=0)
        return sums, squares, lengths2

    def _in_parts(
        self, function: Callable[[slice], Any], size: int, rows: int | None = None
    ) -> list[Any]:
        """Return a function of the rows of each thread, if a row takes `size` multiplications."""
        m = len(self.values) if rows is None else rows
        threads = min(blas_threads(), max(m // FEW, 1)) if m * size > SMALL else 1
        parts = [slice(m * i // threads, m * (i + 1) // threads) for i in range(threads)]
        return in_threads(function, parts)


def converted(values: np.ndarray, dtype: Any, memory: ReusedMemory) -> np.ndarray:
    """Return rows (m, d) in a dtype and in row-major order, by several threads if they have to be copied."""
    if values.dtype == dtype and values.flags.c_contiguous:
        return values
    found = memory.empty(values.shape, dtype)

    def convert(part: slice) -> None:
        np.copyto(found[part], values[part], casting="unsafe")

    HostRows(found, found[:0])._in_parts(convert, 4 * found.shape[1])
    return found


def longest_host_sum(size: int) -> int:
    """Return the largest number of additions in a row of a sum over a batch of `size` rows.

    Sums of chunks, and of threads, count as if they were in the precision of the rows.
    """
    return size if size <= LONGEST else LONGEST + -(-size // LONGEST) + 2 * blas_threads()


def _chunks(part: slice, rows: int) -> list[slice]:
    """Return even parts of a range of rows, of at most `rows` each."""
    begin, m = part.start, part.stop - part.start
    count = -(-m // rows)
    return [slice(begin + m * i // count, begin + m * (i + 1) // count) for i in range(count)]
