"""The scatter matrix M of all rows, accumulated in one pass in float64.

Rows are summed about an origin near their mean, so the matrix is that of the data as given, up to a rounding error
that is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame._system.blas_threads import threads_for
from eigengame.game.rows import DenseRows
from eigengame.linalg.quick_jit import quick_jit
from eigengame.solver.certificates.probes import least_norm
from eigengame.solver.certificates.risk import EXACT_RISK, RISK
from eigengame.solver.certificates.rounding import OPERATIONS, Summed, gamma, growth_about_mean
from eigengame.solver.passes.float64_products import longest_sum
from eigengame.solver.passes.host_sums import on_host
from eigengame.solver.passes.passes import Passes
from eigengame.solver.rows.moments import Moments, batch_moments, merge_moments, no_moments
from eigengame.solver.rows.raw_rows import RawRows

ONE_ROW = Summed(1)
"""A matrix without sums over rows."""


@dataclass(frozen=True)
class Scatter:
    r"""The scatter matrix of all rows.

    Attributes
    ----------
    matrix : array of shape (d, d)
        $M$ with an error $E$, in float64, symmetric, about the mean where rows are centred. Of NumPy, or on a
        device with memory of its own.
    moments : Moments
        Of every feature, in float64; the scatter is in float32 if the matrix was summed in float32.
    rows : int
    error : float
        Bound on the spectral norm of $E$.
    seen : array of shape (r, d) or None
        $GE$ for random probes $G$ (`float32_scatter`); None if only the bound is known, which is then certain.
    seen_error : float
        Bound on the norm of its rounding error.
    summed : Summed
        How the entries of the matrix were summed.
    """

    matrix: Any
    moments: Moments
    rows: int
    error: float
    seen: np.ndarray | None = None
    seen_error: float = 0.0
    summed: Summed = ONE_ROW

    @property
    def confidence(self) -> float:
        """Probability that all bounds hold."""
        return 1.0 if self.seen is None else 1 - RISK

    @property
    def probes(self) -> int:
        """Number of probes r."""
        return 0 if self.seen is None else len(self.seen)

    def image_errors(self, vectors: np.ndarray) -> np.ndarray:
        r"""Return bounds on $\|Ev_i\|$ for unit vectors (K, d) that do not depend on the probes, shape (K,)."""
        if self.seen is None:
            return np.full(len(vectors), self.error)
        least = least_norm(EXACT_RISK / 2 / len(vectors), self.probes)
        found = np.linalg.norm(vectors @ self.seen.T, axis=1) + self.seen_error
        return np.minimum(found / least, self.error)


def accumulate_scatter(passes: Passes, *, center: bool) -> Scatter:
    r"""Return the scatter matrix by one pass in float64.

    Each entry is a sum of products, so its error is at most $\gamma_c\sum_r|z_{rf}||z_{rg}|$ (see
    `rounding`), and the norm of all errors together at most $\gamma_c$ times the sum of all squares. The
    mean is subtracted afterwards: with $C = W\|\mu\|^2$, that adds at most $2\sqrt{C/T} + C/T$ times as much.
    """
    d, place = passes.source.shape[1], passes.placement
    exact = passes.in_float64(None)
    threads = threads_for(math.isqrt(passes.size * d))
    # Infinite numbers are refused afterwards, by the scatter of the features.
    with jax.enable_x64(True), threads, np.errstate(all="ignore"):
        if on_host(exact):
            none: Any = (np.zeros(()), np.zeros(d), np.zeros(d))
            start: Any = (np.zeros((d, d)), Moments(*none), 0, 0)
            matrix, moments, rows, batches = exact.fold(_add_on_host, start, task="covariance")
        else:
            alone = place.mesh is None and jax.default_backend() != "cpu"
            zero = jnp.zeros((d, d)) if alone else place.square(np.zeros((d, d)))
            start = (zero, no_moments(d, np.float64, place), 0, 0)
            total, moments, rows, batches = exact.fold(_add, start, task="covariance")
            matrix = total if alone else np.asarray(place.gathered(total, d, d))
        weight, mean = float(moments.weight), np.asarray(place.gathered(moments.mean, d))
        shift = mean if center else np.zeros_like(mean)
        if isinstance(matrix, np.ndarray):
            squares, matrix = float(np.trace(matrix)), _about(matrix, weight, shift)
        else:
            trace, matrix = _about_there(matrix, weight, shift)
            squares = float(trace)
    # A batch is one product here, not one for each group.
    longest = longest_sum(exact, d, batches) + passes.size + OPERATIONS
    error = gamma(longest) * squares
    if center:
        error *= growth_about_mean(weight, mean, squares)
    summed = Summed(passes.size, mean)
    return Scatter(matrix, moments, rows, error, summed=summed)


def _about(matrix: Any, weight: Any, mean: Any) -> Any:
    """Return a sum of products of rows about their mean (d,), symmetric."""
    matrix = matrix - weight * mean[:, None] * mean[None, :]
    return (matrix + matrix.T) / 2


@quick_jit
def _about_there(matrix: jax.Array, weight: float, mean: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the trace of a sum on a device, and what `_about` does: it is not transferred."""
    return jnp.trace(matrix), _about(matrix, weight, mean)


def _add(carry: Any, rows: RawRows | DenseRows, count: int) -> Any:
    r"""Add one batch to $X^\top X$, the moments, and the numbers of rows and batches."""
    total, moments, seen, batches = carry
    return *_accumulate(rows, total, moments), seen + count, batches + 1


def _add_on_host(carry: Any, rows: RawRows, count: int) -> Any:
    """Version of `_add` in NumPy, which computes one half of a symmetric product only."""
    total, moments, seen, batches = carry
    values, roots = rows.on_host()
    product, weight = values.T @ values, np.sum(roots**2)
    mean = roots @ values / (weight if weight > 0 else 1)
    scatter = np.maximum(np.diag(product) - weight * mean**2, 0)
    own = Moments(weight, mean, scatter)
    return total + product, merge_moments(moments, own), seen + count, batches + 1


@quick_jit
def _accumulate(
    rows: RawRows | DenseRows, total: jax.Array, moments: Moments
) -> tuple[jax.Array, Moments]:
    """Add X'X of one batch, and its moments."""
    wide = rows.widened() if isinstance(rows, RawRows) else rows
    return total + wide.directions(wide.values), merge_moments(moments, batch_moments(wide))
