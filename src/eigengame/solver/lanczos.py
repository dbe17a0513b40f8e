r"""The start of a refinement of sparse rows in memory: eigenvectors by ARPACK, which SciPy has.

A product with sparse rows costs so little that Lanczos' method, which multiplies one vector at a time, finds the
players faster than a game of blocks. What it finds is measured and certified as other players are, so nothing
depends on its convergence. It works on the inner products of the rows or of the features, whichever are fewer, with
$Z = R(X - \mathbf 1\mu^\top)$ and $R$ the roots of the weights; $Z$ is never formed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from eigengame._system.blas_threads import all_blas_threads
from eigengame.solver.exact_stream import exact_probes, exact_stream
from eigengame.solver.held_rows import HeldRows
from eigengame.solver.moments import Moments
from eigengame.solver.passes import Passes
from eigengame.solver.plan import Plan
from eigengame.solver.row_counts import refuse_unless_counted
from eigengame.solver.stream import Stream

PRECISION = 0.0
"""Relative accuracy of the eigenvalues: that of float64. Residuals above the rounding would extend a Krylov space."""


class CentredRows(NamedTuple):
    """Weighted sparse rows about their mean.

    Attributes
    ----------
    values : sparse array of shape (n, d)
        Rows multiplied by the roots of their weights, in float64.
    roots : array of shape (n,)
    mean : array of shape (d,)
        Zero if rows are not centred.
    """

    values: Any
    roots: np.ndarray
    mean: np.ndarray

    def scores(self, block: np.ndarray) -> np.ndarray:
        r"""Return $ZV^\top$ of directions (m, d), shape (n, m)."""
        found: np.ndarray = self.values @ block.T
        return found - np.outer(self.roots, block @ self.mean)

    def directions(self, scores: np.ndarray) -> np.ndarray:
        r"""Return $Y^\top Z$ of scores (n, m), shape (m, d)."""
        found: np.ndarray = (self.values.T @ scores).T
        return found - np.outer(self.roots @ scores, self.mean)


def lanczos_stream(plan: Plan, passes: Passes) -> Stream | None:
    """Read all rows once, and return a stream of their first K eigenvectors; None if ARPACK does not converge."""
    options = plan.options
    held = HeldRows.read(passes)
    refuse_unless_counted(passes.source.name, held.rows, held.weight, 2)
    rows, moments = _centred(held, center=options.center)
    passes.refuse_unless_finite(moments.scatter)
    with all_blas_threads():
        found = _largest(rows, plan.players, options.seed)
        if found is None:
            return None
        values, players = found
        sums, draws = exact_probes(plan, held.width)
        images = rows.directions(rows.scores(draws))
    return exact_stream(plan, players, values, moments, held.rows, sums, images)


def _centred(held: HeldRows, *, center: bool) -> tuple[CentredRows, Moments]:
    """Return the rows about their mean, and the moments of the features."""
    values = sparse.csr_array(held.entries().multiply(held.roots[:, None]).tocsr())
    weight = max(held.weight, np.finfo(float).tiny)
    mean = values.T @ held.roots / weight
    squares = np.asarray(values.multiply(values).sum(axis=0)).ravel()
    moments: Any = (np.asarray(weight), mean, np.maximum(squares - weight * mean**2, 0))
    kept = mean if center else np.zeros_like(mean)
    return CentredRows(values, held.roots, kept), Moments(*moments)


def _largest(rows: CentredRows, count: int, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues of M and their eigenvectors, as orthonormal rows."""
    n, d = rows.values.shape
    size = min(n, d)
    if count >= size:
        return None

    def by_rows(vector: np.ndarray) -> np.ndarray:
        return rows.scores(rows.directions(np.reshape(vector, (n, 1))))[:, 0]

    def by_features(vector: np.ndarray) -> np.ndarray:
        return rows.directions(rows.scores(np.reshape(vector, (1, d))))[0]

    product = LinearOperator((size, size), by_rows if n < d else by_features, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(size)
    try:
        values, vectors = eigsh(product, count, which="LA", tol=PRECISION, v0=start)
    except ArpackNoConvergence:
        return None
    order = np.argsort(values)[::-1]
    values, vectors = np.maximum(values[order], 0), vectors.T[order]
    if n < d:
        vectors = rows.directions(np.ascontiguousarray(vectors.T))
    # Directions of no variance are rounding, which QR replaces by others.
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths > 0, lengths, 1)
    factor, corner = np.linalg.qr(vectors.T)
    return values, np.ascontiguousarray((factor * np.where(np.diag(corner) < 0, -1, 1)).T)
