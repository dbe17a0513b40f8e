"""The exact route for few features: accumulate M in one pass, and solve its eigenproblem.

Rows are summed in float64 about an origin near their mean, so the matrix is that of the data as given, up to a
rounding error that is bounded and part of the certificate.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigvalsh

from eigengame.game.rows import DenseRows
from eigengame.linalg.autotune import jit_without_autotune
from eigengame.solver.certificate import Certificate, certificate, stored
from eigengame.solver.exact_stream import exact_probes, exact_stream
from eigengame.solver.float64_products import longest_sum
from eigengame.solver.goal import converged_status
from eigengame.solver.largest_eigenvectors import (
    bound_outside,
    largest_eigenvectors,
    threads_for,
)
from eigengame.solver.moments import (
    Moments,
    batch_moments,
    gathered_moments,
    merge_moments,
    no_moments,
)
from eigengame.solver.outcome import Outcome, Status
from eigengame.solver.passes import Passes, SourcePasses
from eigengame.solver.plan import Plan
from eigengame.solver.raw_rows import RawRows
from eigengame.solver.result import Found, count_for, rank_bound, scale_of
from eigengame.solver.rounding import OPERATIONS, gamma
from eigengame.solver.routes import COVARIANCE
from eigengame.solver.row_counts import refuse_unless_counted

TOL = 1e-3
"""Angle that counts as converged on this route if no `tol` is given."""


class Scatter(NamedTuple):
    """The scatter matrix of all rows.

    Attributes
    ----------
    matrix : array of shape (d, d)
        In float64, symmetric, about the mean where rows are centred.
    moments : Moments
        Of every feature, in float64.
    rows : int
    error : float
        Bound on the spectral norm of the matrix's rounding error.
    """

    matrix: np.ndarray
    moments: Moments
    rows: int
    error: float


def solve_covariance(plan: Plan, passes: Passes, share: float | None = None) -> Found:
    """Accumulate M in one pass, and solve its eigenproblem.

    With `share`, as many components are returned as explain this share of the variance, whatever the plan says.
    """
    options, d = plan.options, passes.source.shape[1]
    scatter = accumulate_scatter(passes, center=options.center)
    passes.refuse_unless_finite(scatter.moments.scatter)
    refuse_unless_counted(passes.source.name, scatter.rows, scatter.moments.weight, 2)
    moments = gathered_moments(scatter.moments, d, passes.placement)
    scale, tol = scale_of(moments, scatter.rows, options), options.tol or TOL
    if share is not None:
        with threads_for(d):
            spectrum = eigvalsh(scatter.matrix)[::-1]
        plan = plan.with_components(count_for(spectrum, share), d)
    found, players, values = solve_scatter(
        scatter, plan.players, plan.components, scale=scale, tol=tol, dtype=options.dtype
    )
    determined = rank_bound(scatter.rows, d, options)
    status = converged_status(found, tol, determined) or Status.FLOOR_REACHED
    sums, draws = exact_probes(plan, d)
    images = draws @ scatter.matrix
    stream = exact_stream(plan, players, values, moments, scatter.rows, sums, images)
    return Found(
        players=players,
        values=found.rayleigh * scale,
        certificate=found,
        outcome=Outcome(status, COVARIANCE, 1),
        moments=moments,
        rows=scatter.rows,
        stream=stream,
    )


def accumulate_scatter(passes: Passes, *, center: bool) -> Scatter:
    r"""Return the scatter matrix by one pass in float64.

    Each entry is a sum of products, so its error is at most $\gamma_c\sum_r|z_{rf}||z_{rg}|$ (see
    `rounding`), and the norm of all errors together at most $\gamma_c$ times the sum of all squares. The
    mean is subtracted afterwards: with $C = W\|\mu\|^2$, that adds at most $2\sqrt{C/T} + C/T$ times as much.
    """
    d, place = passes.source.shape[1], passes.placement
    exact = passes.in_float64(None)
    with jax.enable_x64(True), threads_for(math.isqrt(passes.size * d)):
        if _on_host(exact):
            none: Any = (np.zeros(()), np.zeros(d), np.zeros(d))
            start: Any = (np.zeros((d, d)), Moments(*none), 0, 0)
            matrix, moments, rows, batches = exact.fold(_add_on_host, start, task="covariance")
        else:
            zero = place.square(jnp.zeros((d, d)))
            start = (zero, no_moments(d, np.float64, place), 0, 0)
            total, moments, rows, batches = exact.fold(_add, start, task="covariance")
            matrix = np.asarray(place.gathered(total, d, d))
    weight, mean = float(moments.weight), np.asarray(place.gathered(moments.mean, d))
    squares, share = float(np.trace(matrix)), 0.0
    if center:
        matrix = matrix - weight * mean[:, None] * mean[None, :]
        share = math.sqrt(weight * float(np.sum(mean**2)) / squares) if squares > 0 else 0.0
    # A batch is one product here, not one for each group.
    longest = longest_sum(exact, d, batches) + passes.size + OPERATIONS
    error = gamma(longest) * squares * (1 + 2 * share + share**2)
    return Scatter((matrix + matrix.T) / 2, moments, rows, error)


def _add(carry: Any, rows: RawRows | DenseRows, count: int) -> Any:
    r"""Add one batch to $X^\top X$, the moments, and the numbers of rows and batches."""
    total, moments, seen, batches = carry
    return *_accumulate(rows, total, moments), seen + count, batches + 1


def _on_host(passes: Passes) -> bool:
    """Return whether rows are in memory that NumPy reads: then nothing needs to be compiled."""
    return isinstance(passes, SourcePasses) and passes.raw and jax.default_backend() == "cpu"


def _add_on_host(carry: Any, rows: RawRows, count: int) -> Any:
    """Version of `_add` in NumPy, which computes one half of a symmetric product only."""
    total, moments, seen, batches = carry
    values, roots = rows.on_host(), np.asarray(rows.roots)
    product, weight = values.T @ values, np.sum(roots**2)
    mean = roots @ values / (weight if weight > 0 else 1)
    scatter = np.maximum(np.diag(product) - weight * mean**2, 0)
    own = Moments(weight, mean, scatter)
    return total + product, merge_moments(moments, own), seen + count, batches + 1


@jit_without_autotune
def _accumulate(
    rows: RawRows | DenseRows, total: jax.Array, moments: Moments
) -> tuple[jax.Array, Moments]:
    """Add X'X of one batch, and its moments."""
    wide = rows.widened() if isinstance(rows, RawRows) else rows
    return total + wide.directions(wide.values), merge_moments(moments, batch_moments(wide))


def solve_scatter(
    scatter: Scatter, players: int, k: int, *, scale: float, tol: float, dtype: Any
) -> tuple[Certificate, np.ndarray, np.ndarray]:
    """Return the certificate of the first k eigenvectors, the first `players` as they are kept, and their values.

    A Cholesky factor bounds the eigenvalues beyond the players, so nothing is left to chance.
    """
    matrix, d = scatter.matrix, len(scatter.matrix)
    with jax.enable_x64(True), threads_for(d):
        values, vectors = largest_eigenvectors(matrix, players + 1)
        following = float(values[players]) if len(values) > players else 0.0
        values, own = np.maximum(values[:players], 0), vectors[:players]
        images = own @ matrix
        # The product is rounded too, and so is the eigenproblem: its residuals show by how much.
        rounding = gamma(d + OPERATIONS) * float(np.linalg.norm(matrix))
        residuals = np.linalg.norm(images - values[:, None] * own, axis=1) + rounding
        beyond = -math.inf
        if players < d:
            beyond = bound_outside(matrix, values, own, residuals, following, scatter.error)
    error = scatter.error + rounding
    found = certificate(
        own,
        images[:players],
        k,
        floor=np.full(players, error),
        scale=scale,
        level=beyond,
        confidence=1.0,
        tol=tol,
    )
    kept = own.astype(dtype)
    return stored(found, own, kept), kept, values
