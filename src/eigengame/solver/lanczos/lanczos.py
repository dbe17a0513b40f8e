r"""Players by Lanczos' method, certified by its own start where possible.

The first block is Gaussian, so the space shows by itself how many eigenvalues exceed a value
(`counted_eigenvalues`). If at most $e$ of them exceed $c$, the largest eigenvalue $h$ outside the span of $e$
players $V$ follows: with $H = VMV^\top > c$ and $R = VM - HV$, the compression of $M$ to the players and one more
direction has at most $e$ eigenvalues above $c$ as well, so

$$h \le c + \|(H - c)^{-1/2}R\|^2.$$

Where that certifies every component, the fit ends. Elsewhere players are refined and certified as those of a game.

A product with sparse rows costs so little that this finds the players faster than a game with all of them
(`sparse_problem`). Dense rows in memory are multiplied in float32, with measured errors (`dense_problem`).
"""

from __future__ import annotations

import math

import numpy as np

from eigengame.solver.certificates.certificate import Certificate, certificate, stored
from eigengame.solver.certificates.counted_eigenvalues import (
    SPARE,
    Count,
    RitzPairs,
    counted_eigenvalues,
)
from eigengame.solver.certificates.risk import RISK, START_RISK
from eigengame.solver.certificates.rounding import OPERATIONS, gamma
from eigengame.solver.certificates.small_products import small_products
from eigengame.solver.lanczos.block_lanczos import FIRST, growing_basis
from eigengame.solver.lanczos.convergence_checks import Checks
from eigengame.solver.lanczos.ritz import PROBES, KrylovProblem, Measured, Ritz, first_block
from eigengame.solver.lanczos.sparse_problem import SparseProblem, largest_of
from eigengame.solver.passes.passes import Passes
from eigengame.solver.planning.lanczos_basis import largest_basis
from eigengame.solver.planning.plan import Plan
from eigengame.solver.planning.routes import LANCZOS
from eigengame.solver.results.outcome import Outcome, Status, converged_status
from eigengame.solver.results.result import Found, rank_bound, scale_of
from eigengame.solver.streams.exact_stream import exact_probes, exact_stream
from eigengame.solver.streams.stream import Stream

TOL = 1e-3
"""Angle that counts as converged if no `tol` is given."""

NONE = 1e-8
"""Share of the largest variance at which a direction may be rounding: it is not kept."""


def certified_by_lanczos(plan: Plan, passes: Passes, problem: KrylovProblem) -> Found | None:
    """Return components that a Krylov space certifies by its own start; None if it does not certify all of them.

    If a callback stops the run, the components are those found so far, if there are any, without a check of what
    was missed.
    """
    options, k, size, block = plan.options, plan.components, problem.size, problem.block
    d, most = passes.source.shape[1], largest_basis(size, k + SPARE, block)
    most = min(most, problem.most_products * block)
    least = max(int(FIRST * k), k + SPARE + block, min(plan.players, most))
    determined = rank_bound(problem.seen, d, options)
    if determined < k or most < least:
        return None
    start = first_block(options.seed, block, size)
    scale, tol = scale_of(problem.moments, problem.seen, options), options.tol or TOL
    aim, checks = min(tol / 2, problem.accuracy), Checks(least, problem.longest_growth)
    for basis in growing_basis(problem.product(), start, most, options.seed):
        m = len(basis.vectors)
        if passes.stopped:
            enough = m >= least  # fewer products show less than the first batch of a game does
            return _stopped(plan, passes, problem, Ritz.of(basis), scale) if enough else None
        if m < min(checks.following, most):
            continue
        ritz = Ritz.of(basis)
        excess = _excess(ritz, float(ritz.values[min(k + SPARE, m - 1)]), k, aim)
        checks = checks.after(m, excess)
        if not excess <= 1:
            if plan.fallback is not None and 2 * m > most and problem.converges_slowly(ritz, k):
                return None
            continue
        errors = problem.errors(ritz)
        counts = counted_eigenvalues(_pairs(ritz, start, errors), k, START_RISK)
        best = min(counts, key=lambda one: one.bound, default=None)
        if best is None:
            continue
        if not (excess := _excess(ritz, best.bound, k, aim)) <= 1:
            checks = checks.after(m, excess)
            continue
        measured = problem.measured(ritz, errors, best.number)
        found = _certificate(measured, best, block, m, k, scale, tol)
        if found is None or (status := converged_status(found, tol, determined)) is None:
            continue
        if problem.knows_rest(found.rayleigh * scale, measured.floor[:k], determined - k):
            outcome = Outcome(status, LANCZOS, passes.record.made)
            return _found(plan, problem, ritz, measured, found, scale, outcome)
    return None


def _stopped(plan: Plan, passes: Passes, problem: KrylovProblem, ritz: Ritz, scale: float) -> Found:
    """Return the components of a space that is not complete."""
    number = min(len(ritz.values), plan.players)
    measured = problem.measured(ritz, problem.errors(ritz), number)
    found = certificate(
        measured.players, measured.images, plan.components, floor=measured.floor, scale=scale
    )
    outcome = Outcome(Status.STOPPED, LANCZOS, passes.record.made)
    return _found(plan, problem, ritz, measured, found, scale, outcome)


def _found(
    plan: Plan,
    problem: KrylovProblem,
    ritz: Ritz,
    measured: Measured,
    certified: Certificate,
    scale: float,
    outcome: Outcome,
) -> Found:
    """Return certified players, and as many further ones as a model keeps."""
    number, values = len(measured.players), ritz.values
    more = min(plan.players, int(np.sum(values > NONE * values[0])))
    others = problem.players(ritz.vectors(number, max(more, number)))
    # As they are kept at once: an array of all of them in float64 would take longer.
    kept = np.empty((number + len(others), others.shape[1]), plan.options.dtype)
    kept[:number], kept[number:], count = measured.players, others, plan.players
    return Found(
        players=kept[:count],
        values=certified.rayleigh * scale,
        certificate=stored(certified, measured.players, kept[:number]),
        outcome=outcome,
        moments=problem.moments,
        rows=problem.seen,
        stream=_stream(plan, problem, kept[:count], values[: len(kept)][:count]),
    )


def lanczos_stream(plan: Plan, problem: SparseProblem) -> tuple[Stream, np.ndarray] | None:
    """Return a stream of the first K eigenvectors, converged to rounding, and these in float64, shape (K, d).

    None if it does not converge, or if the stream is too large.
    """
    found = largest_of(problem, plan.players, plan.options.seed)
    if found is None:
        return None
    values, players = found
    stream = _stream(plan, problem, players, values)
    return None if stream is None else (stream, players)


def _pairs(ritz: Ritz, start: np.ndarray, errors: np.ndarray) -> RitzPairs:
    """Return the Ritz pairs with the start (size, b) in terms of their vectors."""
    (size, b), basis = start.shape, ritz.basis
    first = basis.vectors[:b] @ start
    return RitzPairs(
        ritz.values,
        first.T @ ritz.turn[:b],
        ritz.residuals,
        errors,
        start_error=gamma(16 * size) * float(np.linalg.norm(start)),
    )


def _excess(ritz: Ritz, level: float, k: int, aim: float) -> float:
    """Return how many times too large k angles are, about, with a level of the variance outside the players."""
    gaps = ritz.values[:k] - level
    if not gaps[-1] > 0:
        return math.inf
    return float(np.max(np.linalg.norm(ritz.residuals[:k], axis=1) / gaps)) / aim


def _certificate(
    measured: Measured, best: Count, block: int, vectors: int, k: int, scale: float, tol: float
) -> Certificate | None:
    """Return the certificate of players (e, d) by their products with M; None if the level is above one of them."""
    small, count = small_products(measured.players, measured.images), len(measured.players)
    values, axes = np.linalg.eigh(small.gram)
    largest = float(np.abs(small.gram).sum(axis=1).max())
    floor = measured.floor + gamma(sum(measured.players.shape) + OPERATIONS) * largest
    together = float(np.linalg.norm(floor))
    # The players are orthonormal up to rounding, and so is what is measured of them.
    uneven = math.inf if small.turn is None else np.linalg.norm(small.turn - np.eye(count))
    slack = together + 8 * float(uneven) * largest
    if not values[0] - slack > best.bound:
        return None
    weights = 1 / np.sqrt(values - slack - best.bound)
    outside = weights[:, None] * (axes.T @ small.couplings @ axes) * weights
    norm = math.sqrt(max(float(np.linalg.eigvalsh(outside)[-1]), 0.0))
    norm += 2 * together * float(weights.max())
    return certificate(
        measured.players,
        measured.images,
        k,
        floor=floor,
        scale=scale,
        level=best.bound + norm**2 + slack,
        confidence=1 - RISK,
        probes=block,
        powers=vectors // block,
        tol=tol,
        measured=small,
    )


def _stream(
    plan: Plan, problem: KrylovProblem, players: np.ndarray, values: np.ndarray
) -> Stream | None:
    """Return a remembered game that has seen all rows, with these players."""
    sums, draws = exact_probes(plan, players.shape[1], PROBES)
    images = problem.images(draws)
    moments, seen = problem.moments, problem.seen
    return exact_stream(plan, players, values, moments, seen, sums, images, problem.summed)
