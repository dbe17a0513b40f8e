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
from typing import Any

import jax
import numpy as np

from eigengame.solver.frame import first_mean
from eigengame.solver.goal import RISK
from eigengame.solver.largest_eigenvectors import threads_for
from eigengame.solver.moments import Moments
from eigengame.solver.passes import Passes
from eigengame.solver.probes import draw_probes, least_norm
from eigengame.solver.raw_rows import RawRows
from eigengame.solver.rounding import OPERATIONS, gamma
from eigengame.solver.scatter import Scatter, growth_about_mean

COUNT = 8
"""Number of probes. Few are enough, because errors are far below the tolerance."""

CHUNK = 2**11
"""Rows that are multiplied at a time in float32. Their sums are added in float64."""

PANEL = 2**6
"""Rows that are converted to float64 and multiplied at a time, few enough for the cache."""


def accumulate_in_float32(passes: Passes, *, center: bool, seed: int) -> Scatter:
    """Return the scatter matrix by one pass over rows on the host.

    Rows are taken about the mean of the first of them, so that few digits are lost when the mean is subtracted.
    """
    d, near = passes.source.shape[1], None
    if center:
        near = first_mean(passes.source, passes.frame, passes.batches.weights)
    probes = draw_probes(seed, COUNT, d)
    threads = threads_for(math.isqrt(passes.size * d))
    # Numbers that are infinite, or out of range in float32, show in the matrix.
    with jax.enable_x64(True), threads, np.errstate(all="ignore"):
        start = (np.zeros((d, d)), np.zeros((COUNT + 1, d)), np.zeros(d), np.zeros(()), 0, 0)
        step = partial(_add, np.ascontiguousarray(probes.T))
        carry = passes.in_float64(near).unpadded().fold(step, start, task="covariance")
        return _scatter_of(carry, probes, near)


def _scatter_of(carry: Any, probes: np.ndarray, near: np.ndarray | None) -> Scatter:
    """Return the scatter matrix and its error from the sums of a pass about a guess of the mean."""
    (matrix, sums, squared, weight, rows, panels), d = carry, probes.shape[1]
    images, mean = sums[:-1], sums[-1] / max(float(weight), np.finfo(float).tiny)
    squares = float(squared.sum())
    # Scores are sums over features, images and means are sums over rows, the products with the matrix are both.
    seen_error = gamma(2 * d + PANEL + panels + OPERATIONS) * squares * np.linalg.norm(probes)
    scatter = np.maximum(squared - weight * mean**2, 0)
    # In float32, which tells how accurate the variances of components are beside it.
    moments: Any = (weight, mean, scatter.astype(np.float32))
    if near is not None:
        matrix = matrix - weight * mean[:, None] * mean[None, :]
        images = images - weight * (probes @ mean)[:, None] * mean[None, :]
        seen_error *= growth_about_mean(float(weight), mean, squares)
        moments = (weight, mean + near, moments[2])
    matrix = (matrix + matrix.T) / 2
    seen = images - probes @ matrix
    norm = np.linalg.norm(seen, 2) if np.isfinite(seen).all() else math.inf
    error = float(norm + seen_error) / least_norm(RISK / 2, COUNT)
    return Scatter(matrix, Moments(*moments), int(rows), error, seen, float(seen_error))


def _add(probes: np.ndarray, carry: Any, rows: RawRows, count: int) -> Any:
    """Add one batch to the matrix, the images of the probes, the sums of rows and squares, weights and counts.

    Squares are summed in float64: variances of features may be far smaller than their means.
    """
    matrix, sums, squared, weight, seen, panels = carry
    matrix, sums = matrix.copy(), sums.copy()  # a carry may be kept beside the next one
    rows = jax.tree.map(np.asarray, rows)
    m, d = rows.values.shape
    wide, narrow = np.empty((PANEL, d)), np.empty((min(CHUNK, m), d), np.float32)
    scores = np.empty((PANEL, COUNT + 1))
    for begin in range(0, m, CHUNK):
        held = min(CHUNK, m - begin)
        for at in range(0, held, PANEL):
            size = min(PANEL, held - at)
            panel, roots = rows.on_host(slice(begin + at, begin + at + size), wide)
            np.matmul(panel, probes, out=scores[:size, :-1])
            scores[:size, -1] = roots
            sums += scores[:size].T @ panel
            squared = squared + np.einsum("rf,rf->f", panel, panel)
            weight = weight + np.sum(roots**2)
            narrow[at : at + size] = panel
            panels += 1
        matrix += narrow[:held].T @ narrow[:held]
    return matrix, sums, squared, weight, seen + count, panels
