r"""The start of a refinement of sparse rows in memory: eigenvectors by Lanczos' method.

A product with sparse rows costs so little that Lanczos' method, which multiplies few vectors at a time, finds the
players faster than a game with all of them. What it finds is measured and certified as other players are, so
nothing depends on its convergence. It works on the inner products of the rows or of the features, whichever are
fewer.
"""

from __future__ import annotations

import numpy as np

from eigengame._system.blas_threads import all_blas_threads
from eigengame.solver.centred_rows import CentredRows, centred_rows, largest_by_lanczos
from eigengame.solver.exact_stream import exact_probes, exact_stream
from eigengame.solver.float64_products import orthonormal
from eigengame.solver.held_rows import HeldRows
from eigengame.solver.passes import Passes
from eigengame.solver.plan import Plan
from eigengame.solver.row_counts import refuse_unless_counted
from eigengame.solver.stream import Stream


def lanczos_stream(plan: Plan, passes: Passes) -> tuple[Stream, np.ndarray] | None:
    """Read all rows once, and return a stream of their first K eigenvectors, and these in float64, shape (K, d).

    None if it does not converge, or if the stream is too large.
    """
    options = plan.options
    held = HeldRows.read(passes)
    refuse_unless_counted(passes.source.name, held.rows, held.weight, 2)
    rows, moments = centred_rows(held, center=options.center)
    passes.refuse_unless_finite(moments.scatter)
    with all_blas_threads():
        found = _largest(rows, plan.players, options.seed)
        if found is None:
            return None
        values, players = found
        sums, draws = exact_probes(plan, held.width)
        images = rows.directions(rows.scores(draws))
    stream = exact_stream(plan, players, values, moments, held.rows, sums, images)
    return None if stream is None else (stream, players)


def _largest(rows: CentredRows, count: int, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues of M and their eigenvectors, as orthonormal rows."""
    n, d = rows.values.shape
    if count >= min(n, d):
        return None

    def by_rows(vectors: np.ndarray) -> np.ndarray:
        return rows.scores(rows.directions(vectors))

    def by_features(vectors: np.ndarray) -> np.ndarray:
        return rows.directions(rows.scores(vectors.T)).T

    found = largest_by_lanczos(by_rows if n < d else by_features, min(n, d), count, seed + 1)
    if found is None:
        return None
    values, vectors = found
    if n < d:
        vectors = rows.directions(np.ascontiguousarray(vectors.T))
    # Directions of no variance are rounding, which `orthonormal` replaces by others.
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.maximum(values, 0), orthonormal(vectors / np.where(lengths > 0, lengths, 1))
