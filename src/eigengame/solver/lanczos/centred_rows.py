r"""Sparse rows in memory about their mean: products with them, and the inner products of all rows.

With $V = RX$, $R$ the roots of the weights and $r$ their diagonal, $Z = V - r\mu^\top$ is never formed:

$$ZZ^\top = VV^\top - (V\mu)r^\top - r(V\mu)^\top + \|\mu\|^2rr^\top.$$

All sums are at most as long as $n$ and the largest number of entries of a row together, or, if there is a mean, a
chunk of the features and the number of chunks instead of the latter. All their terms add up to at most $b^2$ with
$b = \|V\|_F + \|r\|\|\mu\|$: so the rounding of everything is bounded by $\gamma$ of that length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dger
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from eigengame._system.blas_threads import blas_threads
from eigengame._system.lazy import lazy
from eigengame._system.threads import in_threads
from eigengame.linalg.csr_parts import even_ranges, product, rows_of
from eigengame.solver.certificates.rounding import OPERATIONS, gamma
from eigengame.solver.lanczos.block_lanczos import largest_by_blocks
from eigengame.solver.passes.held_rows import HeldRows
from eigengame.solver.rows.moments import Moments

CHUNK = 2**12
"""Features whose products with the mean are added at a time."""

PANEL = 2**16
"""Size of a panel of features that is transposed at a time."""

BLOCK = 256
"""Rows whose inner products with all rows are computed at a time."""


class Inner(NamedTuple):
    r"""Inner products of rows, with bounds on rounding errors.

    Attributes
    ----------
    matrix : array of shape (n, n)
        $ZZ^\top$.
    rows_error : float
        Bound on the error of $Z$, in products with it.
    error : float
        Bound on the spectral norm of the error of the matrix.
    """

    matrix: np.ndarray
    rows_error: float
    error: float


@dataclass(frozen=True)
class CentredRows:
    """Weighted sparse rows about their mean.

    Attributes
    ----------
    values : sparse array of shape (n, d)
        Rows multiplied by the roots of their weights, in float64.
    roots : array of shape (n,)
    mean : array of shape (d,)
        Zero if rows are not centred.
    across : sparse array of shape (d, n)
        The transpose of the rows in compressed format, by which SciPy multiplies faster than by a view.
    """

    values: Any
    roots: np.ndarray
    mean: np.ndarray
    across: Any

    def scores(self, block: np.ndarray) -> np.ndarray:
        r"""Return $ZV^\top$ of directions (m, d), shape (n, m)."""
        found = product(self._parts, block.T)
        if self.mean.any() and found.size:
            chunks = range(0, len(self.mean), CHUNK)
            along = sum(block[:, at : at + CHUNK] @ self.mean[at : at + CHUNK] for at in chunks)
            # In place: large temporary arrays take longer than the products.
            found = dger(-1, along, self.roots, a=found.T, overwrite_a=True).T
        return found

    def directions(self, scores: np.ndarray) -> np.ndarray:
        r"""Return $Y^\top Z$ of scores (n, m), shape (m, d), in column-major order."""
        found = product(self._parts_across, scores).T
        if self.mean.any() and found.size:
            found = dger(-1, self.roots @ scores, self.mean, a=found, overwrite_a=True)
        return found

    def directions_by_row(self, scores: np.ndarray) -> np.ndarray:
        """Return the same in row-major order: as many features at a time as stay in the cache."""
        found = np.empty((scores.shape[1], self.across.shape[0]))
        along, about = self.roots @ scores, self.mean.any()
        step = max(PANEL // max(len(found), 1), 16)

        def fill(ends: tuple[int, int]) -> None:
            for begin in range(*ends, step):
                own = slice(begin, min(begin + step, ends[1]))
                panel = rows_of(self.across, own.start, own.stop) @ scores
                if about:
                    panel -= self.mean[own, None] * along
                found[:, own] = panel.T

        in_threads(fill, even_ranges(self.across, blas_threads()))
        return found

    @lazy
    def _parts(self) -> list[sparse.csr_array]:
        """Rows, a part for each thread."""
        return _parts(self.values)

    @lazy
    def _parts_across(self) -> list[sparse.csr_array]:
        """Transpose of the rows, a part for each thread."""
        return _parts(self.across)

    def inner_products(self) -> Inner:
        r"""Return the inner products of all rows, $ZZ^\top$."""
        n, across = self.values.shape[0], self.across
        matrix = np.empty((n, n))
        for begin in range(0, n, BLOCK):
            own = slice(begin, min(begin + BLOCK, n))
            matrix[own] = (self.values[own] @ across).toarray()
        along = self.values @ self.mean
        matrix -= np.outer(along, self.roots) + np.outer(self.roots, along)
        matrix += float(np.sum(self.mean**2)) * np.outer(self.roots, self.roots)
        size, rounding = self._size(), self._rounding()
        rows_error = self.rows_error()
        norm = math.sqrt(float(np.abs(matrix).sum(axis=1).max(initial=0)))
        error = 4 * rounding * size**2 + 2 * norm * rows_error + rows_error**2
        return Inner((matrix + matrix.T) / 2, rows_error, error)

    def rows_error(self) -> float:
        """Return a bound on the error of Z, in products with it."""
        return 4 * self._rounding() * self._size()

    def _size(self) -> float:
        """Return a bound on the sum of all terms of products with unit vectors: b."""
        size = float(np.linalg.norm(self.values.data))
        return size + float(np.linalg.norm(self.roots) * np.linalg.norm(self.mean))

    def _rounding(self) -> float:
        """Return the relative error of the longest sum."""
        (n, d), longest = self.values.shape, int(np.diff(self.values.indptr).max(initial=0))
        if self.mean.any():
            # Products with the mean are sums over all features, chunk by chunk.
            longest = max(longest, min(d, CHUNK + -(-d // CHUNK)))
        return gamma(n + longest + OPERATIONS)


def _parts(matrix: sparse.csr_array) -> list[sparse.csr_array]:
    return [rows_of(matrix, *ends) for ends in even_ranges(matrix, blas_threads())]


def centred_rows(held: HeldRows, *, center: bool) -> tuple[CentredRows, Moments]:
    """Return sparse rows about their mean, and the moments of the features."""
    values = held.entries().astype(np.float64)
    by_column = values.tocsc()
    # A matrix by columns is its transpose by rows: nothing is copied.
    entries = (by_column.data, by_column.indices, by_column.indptr)
    across = sparse.csr_array(entries, shape=by_column.shape[::-1])
    weight = max(held.weight, np.finfo(float).tiny)
    mean = across @ held.roots / weight
    squared = sparse.csr_array((across.data**2, *entries[1:]), shape=across.shape)
    squares = squared @ np.ones(across.shape[1])
    moments: Any = (np.asarray(weight), mean, np.maximum(squares - weight * mean**2, 0))
    kept = mean if center else np.zeros_like(mean)
    return CentredRows(values, held.roots, kept, across), Moments(*moments)


def largest_by_lanczos(
    multiply: Callable[[np.ndarray], np.ndarray], size: int, count: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues of a symmetric product, and their eigenvectors as rows.

    By block Lanczos, or by ARPACK if the basis would be too large. None if neither converges to the precision of
    float64. Residuals above rounding would extend a Krylov space.

    Parameters
    ----------
    multiply : callable
        From vectors (size, m) to their products (size, m).
    size, count : int
        Length of the vectors, and number of eigenvectors, fewer than that.
    seed : int
        Seed of the first vector.
    """
    found = largest_by_blocks(multiply, size, count, seed)
    if found is not None:
        return found

    def single(vector: np.ndarray) -> np.ndarray:
        return multiply(np.reshape(vector, (size, 1)))[:, 0]

    operator = LinearOperator((size, size), single, dtype=np.float64)
    space = min(max(3 * count // 2, count + 20), size)
    start = np.random.default_rng(seed).standard_normal(size)
    try:
        values, vectors = eigsh(operator, count, ncv=space, which="LA", tol=0, v0=start)
    except ArpackNoConvergence:
        return None
    order = np.argsort(values)[::-1]
    return values[order], np.ascontiguousarray(vectors.T[order])
