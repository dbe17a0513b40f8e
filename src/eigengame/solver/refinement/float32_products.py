r"""Products with $M$ in float32 on a host, by NumPy while rows are in the cache, or compiled for large batches.

Their errors have the bounds of `Rounding`, or are measured in float64.

**Measured errors.** Bounds on the rounding of long sums in float32 are far above the errors that occur, and
products in float64 take several times as long. Let $WM + E$ be the computed products of directions $W$. In the same
pass a few Gaussian vectors $G$ are multiplied in float64, so $EG^\top = (WM + E)G^\top - W(MG^\top)$ is known. For
each direction its entries are Gaussian with variance $\|E_i\|^2$: with probability $1 - \delta$

$$\|E_i\| \le \|E_iG^\top\|/\sqrt{\chi^2_r(\delta)}.$$

$G$ is drawn anew for each pass, so it depends neither on the directions nor on their rounding.
"""

from __future__ import annotations

from functools import partial

import jax
import numpy as np

from eigengame.sharding.gather import gather
from eigengame.solver.certificates.probes import least_norm
from eigengame.solver.certificates.risk import ROUNDING_RISK
from eigengame.solver.certificates.rounding import gamma, growth_about_mean
from eigengame.solver.passes.host_sums import HostSums, add_rows, on_host
from eigengame.solver.planning.plan import COARSE
from eigengame.solver.refinement.goal import Goal

COUNT = 8
"""Number of Gaussian vectors."""

LONG_BATCH = 2**14
"""Rows of a batch of an array in memory, if they are few numbers: long ones are divided among threads evenly."""

FEW = 2**26
"""Numbers of a batch that may have to be copied."""

STREAM = 0x6D656173
"""Stream of random numbers from which they are drawn."""


def computed_on_host(goal: Goal) -> bool:
    """Return whether products of a goal in the precision of the updates are computed by NumPy."""
    narrow = np.dtype(goal.dtype) == np.float32 and not goal.passes.sparse_on_host
    return narrow and on_host(goal.passes.in_float64(None))


def measurable(goal: Goal) -> bool:
    """Return whether errors of a goal can be measured, and products are likely to be accurate enough."""
    return goal.tol is not None and goal.tol >= COARSE and computed_on_host(goal)


def products_on_host(goal: Goal, block: np.ndarray, task: str) -> np.ndarray:
    """Return the products (b, d) of a block in float32 with M, without their errors.

    Scores are centred before the second product: then an error of the mean enters by its square only, and products
    have no large common part to round.
    """
    b, d = block.shape
    mean = np.zeros(d) if goal.mean is None else gather(goal.mean).astype(np.float64)
    level = None if goal.mean is None else (block @ mean).astype(np.float32)
    with jax.enable_x64(True):
        step = partial(add_rows, block, np.zeros((0, d)), level=level)
        least = min(LONG_BATCH, FEW // d) if goal.passes.source.views else 0
        exact = goal.passes.in_float64(None).unpadded(least)
        sums = exact.fold(step, HostSums.empty(b, 0, d), task=task)
    images: np.ndarray = sums.images - sums.along[:, None] * mean
    return images


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
    with jax.enable_x64(True):
        step = partial(add_rows, narrow, draws)
        exact = goal.passes.in_float64(mean).unpadded()
        sums = exact.fold(step, HostSums.empty(b, COUNT, d), task=task)
        images, seen, squares = sums.images, sums.seen, float(np.sum(sums.squares))
        rounded, length = narrow.astype(np.float64), np.linalg.norm(draws)
        error = gamma(sums.longest()) * squares * length
        if mean is not None:
            weight = float(sums.weight)
            centre = sums.columns / max(weight, np.finfo(float).tiny)
            images = images - sums.along[:, None] * centre
            seen = seen - sums.scores[:, None] * centre
            error *= growth_about_mean(weight, centre, squares)
        # The inner products are rounded as well.
        error = error + gamma(d) * (np.linalg.norm(images, axis=1) * length + np.linalg.norm(seen))
        apart = np.linalg.norm(images @ draws.T - rounded @ seen.T, axis=1) + error
    # Passes share the risk as looks do.
    risk = ROUNDING_RISK / ((made + 1) * (made + 2) * max(b, 1))
    return rounded, images, apart / least_norm(risk, COUNT)
