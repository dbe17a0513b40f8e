r"""The scatter matrix by products in float32, with an error that is measured in float64.

A CPU multiplies float32 twice as fast as float64. Let $M + E$ be the computed matrix. The products $GM$ of a few
Gaussian probes $G$ are computed in float64 in the same pass, so $GE$ is known. For a vector $v$ that does not
depend on the probes, the entries of $GEv$ are Gaussian with variance $\|Ev\|^2$: with probability $1 - \delta$

$$\|Ev\| \le \|GEv\|/\sqrt{\chi^2_r(\delta)},\qquad \|E\| \le \|GE\|/\sqrt{\chi^2_r(\delta)}.$$

Neither the order of the sums nor the independence of roundings matters.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import numpy as np

from eigengame._system.blas_threads import threads_for
from eigengame._system.threads import in_threads
from eigengame.solver.certificates.probes import draw_probes, least_norm
from eigengame.solver.certificates.risk import EXACT_RISK
from eigengame.solver.certificates.rounding import Summed, gamma, growth_about_mean, unit_roundoff
from eigengame.solver.exact.scatter import Scatter
from eigengame.solver.passes.host_sums import HostSums, draw_sums, parts_for_threads
from eigengame.solver.passes.passes import Passes
from eigengame.solver.rows.frame import large_mean
from eigengame.solver.rows.moments import Moments
from eigengame.solver.rows.raw_rows import RawRows

COUNT = 8
"""Number of probes. Few are enough, because errors are far below the tolerance."""

CHUNK = 2**11
"""Rows that are multiplied at a time in float32. Their sums are added in float64."""

MOST_SHARED = 2**11
"""Number of features up to which each thread has a matrix of its own. With more, BLAS uses several threads."""

Carry = tuple[np.ndarray, HostSums]


def accumulate_in_float32(passes: Passes, *, center: bool, seed: int) -> Scatter:
    """Return the scatter matrix by one pass over rows on the host.

    If their mean is large, rows are taken about the mean of the first of them, so that few digits are lost when the
    mean is subtracted.
    """
    d, near = passes.source.shape[1], None
    if center:
        near = large_mean(passes.source, passes.frame, passes.batches.weights)
    probes = draw_probes(seed, COUNT, d)
    # Numbers that are infinite, or out of range in float32, show in the matrix.
    with jax.enable_x64(True), threads_for(d if d > MOST_SHARED else 0), np.errstate(all="ignore"):
        exact, start = (
            passes.in_float64(near).unpadded(),
            (np.zeros((d, d)), HostSums.empty(0, COUNT, d)),
        )
        matrix, sums = exact.fold(partial(_add, probes), start, task="covariance")
        return _scatter_of(matrix, sums, probes, near, center=center)


def _scatter_of(
    matrix: np.ndarray, sums: HostSums, probes: np.ndarray, near: np.ndarray | None, *, center: bool
) -> Scatter:
    """Return the scatter matrix and its error from the sums of a pass about an origin near the mean."""
    weight, squares, images = float(sums.weight), float(sums.squares.sum()), sums.seen
    mean = sums.columns / max(weight, np.finfo(float).tiny)
    # The products with the matrix are sums over features as well.
    seen_error = gamma(len(mean) + sums.longest()) * squares * float(np.linalg.norm(probes))
    scatter = np.maximum(sums.squares - weight * mean**2, 0)
    if center:
        matrix = matrix - weight * mean[:, None] * mean[None, :]
        images = images - sums.scores[:, None] * mean[None, :]
        seen_error *= growth_about_mean(weight, mean, squares)
    matrix = (matrix + matrix.T) / 2
    seen = images - probes @ matrix
    norm = np.linalg.norm(seen, 2) if np.isfinite(seen).all() else math.inf
    error = float(norm + seen_error) / least_norm(EXACT_RISK / 2, COUNT)
    moments = Moments(
        sums.weight,
        mean if near is None else mean + near,
        # In float32, which tells how accurate the variances of components are beside it.
        scatter.astype(np.float32),
    )
    summed = Summed(CHUNK, mean, unit_roundoff(np.float32))
    return Scatter(matrix, moments, sums.rows, error, seen, seen_error, summed)


def _add(probes: np.ndarray, carry: Carry, rows: RawRows, count: int) -> Carry:
    """Add one batch to the matrix, and to the sums of the probes, of rows and of squares.

    Squares are summed in float64: variances of features may be far smaller than their means.
    """
    (matrix, sums), d = carry, probes.shape[1]
    rows = jax.tree.map(np.asarray, rows)
    parts = parts_for_threads(rows, d**2)
    if d > MOST_SHARED:
        parts = [slice(parts[0].start, parts[-1].stop)]
    for product, own in in_threads(partial(_part, probes, rows), parts):
        matrix, sums = np.add(matrix, product, out=product), sums.plus(own)
    return matrix, sums._replace(rows=sums.rows + count)


def _part(probes: np.ndarray, rows: RawRows, part: slice) -> Carry:
    """Return the matrix and the sums of some rows."""
    d = probes.shape[1]
    matrix = np.zeros((d, d))
    buffer = None if rows.is_plain_float32(part) else np.empty((CHUNK, d), np.float32)
    for begin in range(part.start, part.stop, CHUNK):
        own = slice(begin, min(begin + CHUNK, part.stop))
        held = rows.values[own] if buffer is None else rows.in_float32(own, buffer)
        matrix += held.T @ held
    return matrix, draw_sums(rows, probes, part)
