r"""Products with $M$ in float32 on a host, with errors that are measured in float64.

Bounds on the rounding of long sums in float32 are far above the errors that occur, and products in float64 take
several times as long. Let $WM + E$ be the computed products of directions $W$. In the same pass a few Gaussian
vectors $G$ are multiplied in float64, so $EG^\top = (WM + E)G^\top - W(MG^\top)$ is known. For each direction its
entries are Gaussian with variance $\|E_i\|^2$: with probability $1 - \delta$

$$\|E_i\| \le \|E_iG^\top\|/\sqrt{\chi^2_r(\delta)}.$$

$G$ is drawn anew for each pass, so it depends neither on the directions nor on their rounding.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import numpy as np

from eigengame.sharding.gather import gather
from eigengame.solver.goal import ROUNDING_RISK, Goal
from eigengame.solver.largest_eigenvectors import threads_for
from eigengame.solver.probes import least_norm
from eigengame.solver.raw_rows import RawRows
from eigengame.solver.rounding import OPERATIONS, gamma
from eigengame.solver.scatter import growth_about_mean, on_host

COUNT = 8
"""Number of Gaussian vectors."""

STREAM = 0x6D656173
"""Stream of random numbers from which they are drawn."""

COARSE = 1e-3
"""Least tolerance for which float32 is likely to be enough."""

CHUNK = 2**25
"""Size of the rows that are multiplied at a time in float32."""

PANEL = 2**19
"""Size of a panel of columns that is converted to float64 at a time: as much as stays in the cache."""


def measurable(goal: Goal) -> bool:
    """Return whether products of a goal can be computed in this way, and are likely to be accurate enough."""
    if goal.tol is None or goal.tol < COARSE or np.dtype(goal.dtype) != np.float32:
        return False
    return not goal.passes.on_host and on_host(goal.passes.in_float64(None))


def measured_products(
    goal: Goal, block: np.ndarray, task: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return directions (b, d) as they were multiplied, their products with M, and bounds on the errors, (b,).

    Parameters
    ----------
    goal : Goal
    block : array of shape (b, d)
        Directions of at most unit length, in float64.
    task : str
        Name of the pass, for progress.
    """
    mean = None if goal.mean is None else gather(goal.mean).astype(np.float64)
    narrow, (b, d) = block.astype(np.float32), block.shape
    made = goal.passes.record.made
    draws = np.random.default_rng([STREAM, goal.seed, made]).standard_normal((COUNT, d))
    with jax.enable_x64(True), threads_for(math.isqrt(goal.passes.size * d)):
        sums = (np.zeros((b, d)), np.zeros(b), np.zeros((COUNT, d)), np.zeros(COUNT), np.zeros(d))
        start = (*sums, np.zeros(()), np.zeros(()), 0)
        step = partial(_add, narrow, draws)
        carry = goal.passes.in_float64(mean).fold(step, start, task=task)
        images, along, seen, scores, columns, weight, squares, chunks = carry
        rounded, length = narrow.astype(np.float64), np.linalg.norm(draws)
        # Scores are sums over panels of features, products are sums over chunks of rows.
        size, width = _sizes(goal.passes.size, d)
        longest = width + -(-d // width) + size + chunks + OPERATIONS
        error = gamma(longest) * float(squares) * length
        if mean is not None:
            centre = columns / max(float(weight), np.finfo(float).tiny)
            images, seen = images - along[:, None] * centre, seen - scores[:, None] * centre
            error *= growth_about_mean(float(weight), centre, float(squares))
        # The inner products are rounded as well.
        error = error + gamma(d) * (np.linalg.norm(images, axis=1) * length + np.linalg.norm(seen))
        apart = np.linalg.norm(images @ draws.T - rounded @ seen.T, axis=1) + error
    # Passes share the risk as looks do.
    risk = ROUNDING_RISK / ((made + 1) * (made + 2) * max(b, 1))
    return rounded, images, apart / least_norm(risk, COUNT)


def _add(block: np.ndarray, draws: np.ndarray, carry: Any, rows: RawRows, count: int) -> Any:
    """Add one batch to the products and their sums of scores, both of the draws, and the sums of rows."""
    images, along, seen, scores, columns, weight, squares, chunks = carry
    # A carry may be kept beside the next one.
    images, along, seen, scores, columns = (
        one.copy() for one in (images, along, seen, scores, columns)
    )
    rows = jax.tree.map(np.asarray, rows)
    m, d = rows.values.shape
    size, width = _sizes(m, d)
    panels = [slice(begin, min(begin + width, d)) for begin in range(0, d, width)]
    narrow = np.empty((size, d), np.float32)
    for begin in range(0, m, size):
        part = slice(begin, min(begin + size, m))
        roots = rows.roots[part]
        held, own = narrow[: len(roots)], np.zeros((len(roots), COUNT))
        for panel in panels:
            wide = rows.columns_on_host(part, panel)
            held[:, panel] = wide
            own += wide @ draws[:, panel].T
            columns[panel] += roots @ wide
            squares = squares + np.vdot(wide, wide)
        there = held @ block.T
        images += there.T @ held
        along += roots @ there
        for panel in panels:
            if len(panels) > 1:
                wide = rows.columns_on_host(part, panel)
            seen[:, panel] += own.T @ wide
        scores += roots @ own
        weight = weight + np.sum(roots**2)
        chunks += 1
    return images, along, seen, scores, columns, weight, squares, chunks


def _sizes(m: int, d: int) -> tuple[int, int]:
    """Return the number of rows of a chunk, and of features of a panel, for batches of shape (m, d)."""
    size = min(m, max(CHUNK // d, 256))
    return size, min(d, max(PANEL // size, 128))
