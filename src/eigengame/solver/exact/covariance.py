"""The exact route for few features: accumulate M in one pass, and solve its eigenproblem.

The error of the matrix is bounded, and part of the certificate. On a CPU float32 takes half the time of float64: it
is used first if the tolerance is large. The pass is repeated in float64 if a component is not certified, or if the
variance that the components leave is not known well.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np
from scipy.linalg import eigvalsh

from eigengame._system.blas_threads import threads_for
from eigengame.solver.certificates.certificate import Certificate, certificate, stored
from eigengame.solver.certificates.rounding import OPERATIONS, gamma
from eigengame.solver.exact.float32_scatter import accumulate_in_float32
from eigengame.solver.exact.largest_eigenvectors import (
    bound_outside,
    images_and_size,
    largest_eigenvectors,
)
from eigengame.solver.exact.scatter import Scatter, accumulate_scatter
from eigengame.solver.passes.host_sums import on_host
from eigengame.solver.passes.passes import Passes
from eigengame.solver.planning.plan import Plan, tries_float32
from eigengame.solver.planning.routes import COVARIANCE
from eigengame.solver.results.outcome import Outcome, Status, converged_status
from eigengame.solver.results.result import (
    Found,
    count_for,
    rank_bound,
    rest_is_known,
    scale_of,
    total_scatter,
)
from eigengame.solver.rows.moments import gathered_moments
from eigengame.solver.rows.row_counts import refuse_unless_counted
from eigengame.solver.streams.exact_stream import exact_probes, exact_stream

TOL = 1e-3
"""Angle that counts as converged on this route if no `tol` is given."""


def solve_covariance(plan: Plan, passes: Passes, share: float | None = None) -> Found:
    """Accumulate M in one pass, and solve its eigenproblem.

    With `share`, as many components are returned as explain this share of the variance, whatever the plan says.
    """
    options = plan.options
    again = options.passes > 1 and passes.source.again  # float64 may follow
    if share is None and again and on_host(passes.in_float64(None)) and tries_float32(plan):
        scatter = accumulate_in_float32(passes, center=options.center, seed=options.seed + 2)
        # Squares that are out of range in float32 may be in range in float64.
        if np.isfinite(scatter.matrix).all() and np.isfinite(scatter.moments.scatter).all():
            found = _solve(plan, passes, scatter)
            converged = found.outcome.status is Status.CONVERGED
            if passes.stopped or (converged and _knows_rest(found, scatter, center=options.center)):
                return found
    return _solve(plan, passes, accumulate_scatter(passes, center=options.center), share)


def _knows_rest(found: Found, scatter: Scatter, *, center: bool) -> bool:
    """Return whether the variance that the components leave is known (`rest_is_known`)."""
    k, others = len(found.values), min(found.rows, found.players.shape[1]) - len(found.values)
    errors = scatter.image_errors(found.players[:k].astype(np.float64))
    total = total_scatter(scatter.moments, center=center)
    return rest_is_known(found.values, errors, total, others)


def _solve(plan: Plan, passes: Passes, scatter: Scatter, share: float | None = None) -> Found:
    """Solve the eigenproblem of M; see `solve_covariance` for `share`."""
    options, d = plan.options, passes.source.shape[1]
    passes.refuse_unless_finite(scatter.moments.scatter)
    refuse_unless_counted(passes.source.name, scatter.rows, scatter.moments.weight, 2)
    moments = gathered_moments(scatter.moments, d, passes.placement)
    scale, tol = scale_of(moments, scatter.rows, options), options.tol or TOL
    if share is not None:
        with threads_for(d):
            spectrum = eigvalsh(np.asarray(scatter.matrix))[::-1]
        plan = plan.with_components(count_for(spectrum, share), d)
    found, players, values = solve_scatter(
        scatter, plan.players, plan.components, scale=scale, tol=tol, dtype=options.dtype
    )
    determined = rank_bound(scatter.rows, d, options)
    status = converged_status(found, tol, determined) or Status.FLOOR_REACHED
    sums, draws = exact_probes(plan, d)
    with jax.enable_x64(True):
        images, _ = images_and_size(draws, scatter.matrix)
    stream = exact_stream(
        plan, players, values, moments, scatter.rows, sums, images, scatter.summed
    )
    return Found(
        players=players,
        values=found.rayleigh * scale,
        certificate=found,
        outcome=Outcome(status, COVARIANCE, passes.record.made),
        moments=moments,
        rows=scatter.rows,
        stream=stream,
    )


def solve_scatter(
    scatter: Scatter,
    players: int,
    k: int,
    *,
    scale: float,
    tol: float,
    dtype: Any,
    vectors: np.ndarray | None = None,
) -> tuple[Certificate, np.ndarray, np.ndarray]:
    """Return the certificate of the first k eigenvectors, the first `players` as they are kept, and their values.

    A Cholesky factor bounds the eigenvalues beyond the players, so nothing is left to chance. `vectors` are nearly
    the eigenvectors, at least `players` of them, if they are known; they are rotated within their span.
    """
    matrix, d = scatter.matrix, len(scatter.matrix)
    with jax.enable_x64(True), threads_for(d) if vectors is None else nullcontext():
        if vectors is None:
            values, vectors = largest_eigenvectors(matrix, players + 1)
        else:
            values, vectors = _ritz(matrix, vectors)
        following = float(values[players]) if len(values) > players else 0.0
        values, own = np.maximum(values[:players], 0), vectors[:players]
        images, size = images_and_size(own, matrix)
        # The product is rounded too, and so is the eigenproblem: its residuals show by how much.
        rounding = gamma(d + OPERATIONS) * size
        residuals = np.linalg.norm(images - values[:, None] * own, axis=1) + rounding
        beyond = -math.inf
        if players < d:
            beyond = bound_outside(matrix, values, own, residuals, following, scatter.error, size)
    found = certificate(
        own,
        images[:players],
        k,
        floor=scatter.image_errors(own) + rounding,
        scale=scale,
        level=beyond,
        confidence=scatter.confidence,
        probes=scatter.probes,
        powers=int(scatter.probes > 0),
        tol=tol,
    )
    kept = own.astype(dtype)
    return stored(found, own, kept), kept, values


def _ritz(matrix: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Ritz values, largest first, and orthonormal Ritz vectors, as rows, in the span of some rows."""
    basis = np.linalg.qr(vectors.astype(np.float64).T)[0]
    values, turn = np.linalg.eigh(basis.T @ matrix @ basis)
    return values[::-1], np.ascontiguousarray((basis @ turn[:, ::-1]).T)
