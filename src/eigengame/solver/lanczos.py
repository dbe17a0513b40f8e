r"""Sparse rows in memory: players by Lanczos' method, certified by its own start where possible.

A product with sparse rows costs so little that Lanczos' method, which multiplies few vectors at a time, finds the
players faster than a game with all of them. It works on the inner products of the rows or of the features,
whichever are fewer; both have the same eigenvalues.

Its first block is Gaussian, so the space shows by itself how many eigenvalues exceed a value
(`counted_eigenvalues`). If at most $e$ of them exceed $c$, the largest eigenvalue $h$ outside the span of $e$
players $V$ follows: with $H = VMV^\top > c$ and $R = VM - HV$, the compression of $M$ to the players and one more
direction has at most $e$ eigenvalues above $c$ as well, so

$$h \le c + \|(H - c)^{-1/2}R\|^2.$$

Where that certifies every component, the fit ends. Elsewhere the players are converged to rounding, measured and
certified as those of a game are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from eigengame._system.blas_threads import all_blas_threads
from eigengame.solver.block_lanczos import (
    BLOCK,
    FIRST,
    GROWTH,
    Basis,
    Product,
    growing_basis,
    largest_basis,
)
from eigengame.solver.centred_rows import CentredRows, centred_rows, largest_by_lanczos
from eigengame.solver.certificate import Certificate, certificate, stored
from eigengame.solver.counted_eigenvalues import SPARE, Count, RitzPairs, counted_eigenvalues
from eigengame.solver.exact_stream import exact_probes, exact_stream
from eigengame.solver.float64_products import orthonormal
from eigengame.solver.goal import RISK, ROUNDING_RISK, converged_status
from eigengame.solver.held_rows import HeldRows
from eigengame.solver.moments import Moments
from eigengame.solver.outcome import Outcome
from eigengame.solver.passes import Passes
from eigengame.solver.plan import Plan
from eigengame.solver.probes import draw_probes
from eigengame.solver.result import Found, rank_bound, scale_of
from eigengame.solver.rounding import OPERATIONS, gamma
from eigengame.solver.routes import LANCZOS
from eigengame.solver.row_counts import refuse_unless_counted
from eigengame.solver.small_products import small_products
from eigengame.solver.stream import Stream

TOL = 1e-3
"""Angle that counts as converged if no `tol` is given."""

ACCURATE = 1e-5
"""Angle to which components are converged even if a larger one is tolerated: that takes few more products."""


NONE = 1e-8
"""Share of the largest variance at which a direction may be rounding: it is not kept."""


START_RISK = ROUNDING_RISK
"""Risk that is left to the start. A refinement that follows is in float64, where nothing is left to rounding."""


class SparseProblem(NamedTuple):
    """All sparse rows of a fit.

    Attributes
    ----------
    rows : CentredRows
    moments : Moments
        Of each feature.
    seen : int
        Rows with a weight above 0.
    """

    rows: CentredRows
    moments: Moments
    seen: int

    @property
    def by_rows(self) -> bool:
        """Whether rows are fewer than features, so that their inner products are the smaller problem."""
        n, d = self.rows.values.shape
        return bool(n < d)

    def product(self) -> Product:
        """Return the product of vectors (size, m) with the inner products of rows or features."""
        rows = self.rows
        if self.by_rows:
            return lambda vectors: rows.scores(rows.directions(vectors))
        return lambda vectors: rows.directions(rows.scores(vectors.T)).T

    def image(self, players: np.ndarray) -> np.ndarray:
        """Return the products of players (K, d) with M."""
        return self.rows.directions(self.rows.scores(players))

    def players(self, vectors: np.ndarray) -> np.ndarray:
        """Return unit directions (K, d) of eigenvectors (K, size) of the smaller problem."""
        if not self.by_rows:
            return vectors
        found = self.rows.directions(np.ascontiguousarray(vectors.T))
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return found / np.where(lengths > 0, lengths, 1)

    def product_error(self, largest: float) -> float:
        """Return a bound on the error of a product with a unit vector, if M has this largest eigenvalue."""
        error = self.rows.rows_error()
        return 2 * math.sqrt(largest) * error + error**2


def sparse_problem(plan: Plan, passes: Passes) -> SparseProblem:
    """Read all rows once."""
    held = HeldRows.read(passes)
    refuse_unless_counted(passes.source.name, held.rows, held.weight, 2)
    rows, moments = centred_rows(held, center=plan.options.center)
    passes.refuse_unless_finite(moments.scatter)
    return SparseProblem(rows, moments, held.rows)


def certified_by_lanczos(plan: Plan, passes: Passes, problem: SparseProblem) -> Found | None:
    """Return components that a Krylov space certifies by its own start; None if it does not certify all of them."""
    options, (n, d), k = plan.options, problem.rows.values.shape, plan.components
    size, least = min(n, d), max(int(FIRST * k), k + SPARE + BLOCK)
    most = largest_basis(size, k + SPARE)
    determined = rank_bound(problem.seen, d, options)
    if determined < k or most < least:
        return None
    start = np.ascontiguousarray(draw_probes(options.seed + 1, BLOCK, size).T)
    scale, tol, check = scale_of(problem.moments, problem.seen, options), options.tol or TOL, least
    with all_blas_threads():
        for basis in growing_basis(problem.product(), start, most, options.seed):
            if len(basis.vectors) < check:
                continue
            check = int(GROWTH * len(basis.vectors))
            pairs, turn = _ritz_pairs(basis, start, problem)
            counts = counted_eigenvalues(pairs, k, START_RISK)
            if not counts or not _promises(pairs, best := min(counts, key=_bound), k, tol):
                continue
            players = problem.players(turn[:, : best.number].T @ basis.vectors)
            found = _certificate(problem, players, best, len(basis.vectors), k, scale, tol)
            if found is None or (status := converged_status(found, tol, determined)) is None:
                continue
            more = min(plan.players, int(np.sum(pairs.values > NONE * pairs.values[0])))
            others = problem.players(turn[:, best.number : more].T @ basis.vectors)
            own, count = np.concatenate([players, others]), plan.players
            kept = own.astype(options.dtype)
            return Found(
                players=kept[:count],
                values=found.rayleigh * scale,
                certificate=stored(found, players, kept[: len(players)]),
                outcome=Outcome(status, LANCZOS, passes.record.made),
                moments=problem.moments,
                rows=problem.seen,
                stream=_stream(plan, problem, own[:count], pairs.values[: len(own)][:count]),
            )
    return None


def lanczos_stream(plan: Plan, problem: SparseProblem) -> tuple[Stream, np.ndarray] | None:
    """Return a stream of the first K eigenvectors, converged to rounding, and these in float64, shape (K, d).

    None if it does not converge, or if the stream is too large.
    """
    with all_blas_threads():
        found = largest_of(problem, plan.players, plan.options.seed)
        if found is None:
            return None
        values, players = found
        stream = _stream(plan, problem, players, values)
    return None if stream is None else (stream, players)


def largest_of(
    problem: SparseProblem, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues of M and their eigenvectors, as orthonormal rows; None if not converged."""
    size = min(problem.rows.values.shape)
    if count >= size:
        return None
    found = largest_by_lanczos(problem.product(), size, count, seed + 1)
    if found is None:
        return None
    values, vectors = found
    # Directions of no variance are rounding, which `orthonormal` replaces by others.
    return np.maximum(values, 0), orthonormal(problem.players(vectors))


def _bound(count: Count) -> float:
    return count.bound


def _ritz_pairs(
    basis: Basis, start: np.ndarray, problem: SparseProblem
) -> tuple[RitzPairs, np.ndarray]:
    """Return the Ritz pairs of a basis, and their coefficients (m, m), as columns."""
    (m, size), b = basis.vectors.shape, start.shape[1]
    values, turn = eigh(basis.projected, lower=False)
    values, turn = values[::-1], turn[:, ::-1]
    residuals = (basis.coupling @ turn[-b:]).T
    largest = float(values[0] + np.linalg.norm(residuals[0]))
    # Each vector is multiplied, orthogonalised twice by sums of m and of `size` terms, and factorised.
    error = problem.product_error(largest) + gamma(16 * (m + size)) * largest
    first = basis.vectors[:b] @ start
    return RitzPairs(
        values,
        first.T @ turn[:b],
        residuals,
        error=math.sqrt(m) * error,
        start_error=gamma(16 * size) * float(np.linalg.norm(start)),
    ), turn


def _promises(pairs: RitzPairs, best: Count, k: int, tol: float) -> bool:
    """Return whether residuals and level are small enough that a certificate is likely."""
    lengths, aim = np.linalg.norm(pairs.residuals[:k], axis=1), min(tol / 2, ACCURATE)
    return bool((lengths <= aim * (pairs.values[:k] - best.bound)).all())


def _certificate(
    problem: SparseProblem,
    players: np.ndarray,
    best: Count,
    powers: int,
    k: int,
    scale: float,
    tol: float,
) -> Certificate | None:
    """Return the certificate of players (e, d) by their products with M; None if the level is above one of them."""
    images = problem.image(players)
    measured, count = small_products(players, images), len(players)
    values, axes = np.linalg.eigh(measured.gram)
    largest = float(np.abs(measured.gram).sum(axis=1).max())
    floor = problem.product_error(largest) + gamma(sum(players.shape) + OPERATIONS) * largest
    # The players are orthonormal up to rounding, and so is what is measured of them.
    uneven = math.inf if measured.turn is None else np.linalg.norm(measured.turn - np.eye(count))
    slack = count * floor + 8 * float(uneven) * largest
    if not values[0] - slack > best.bound:
        return None
    weights = 1 / np.sqrt(values - slack - best.bound)
    outside = weights[:, None] * (axes.T @ measured.couplings @ axes) * weights
    norm = math.sqrt(max(float(np.linalg.eigvalsh(outside)[-1]), 0.0))
    norm += 2 * math.sqrt(count) * floor * float(weights.max())
    return certificate(
        players,
        images,
        k,
        floor=np.full(count, floor),
        scale=scale,
        level=best.bound + norm**2 + slack,
        confidence=1 - RISK,
        probes=BLOCK,
        powers=powers // BLOCK,
        tol=tol,
        measured=measured,
    )


def _stream(
    plan: Plan, problem: SparseProblem, players: np.ndarray, values: np.ndarray
) -> Stream | None:
    """Return a remembered game that has seen all rows, with these players."""
    sums, draws = exact_probes(plan, players.shape[1])
    images = problem.image(draws)
    return exact_stream(plan, players, values, problem.moments, problem.seen, sums, images)
