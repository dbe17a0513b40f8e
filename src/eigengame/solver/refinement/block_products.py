"""Products of a block of directions with M by one pass, in float64 on the host with a bound on their errors."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from eigengame.linalg.products import LONG
from eigengame.sharding.gather import gather
from eigengame.solver.passes import float64_products as float64
from eigengame.solver.refinement.float32_products import (
    computed_on_host,
    measured_products,
    products_on_host,
)
from eigengame.solver.refinement.goal import Goal
from eigengame.solver.refinement.products import image

Precision = Literal["update", "measured", "float64"]
"""Precision of a pass: that of the updates, with bounds on the rounding of sums; float32 with measured errors
(`float32_products`); or float64."""


class BlockProducts(NamedTuple):
    """Directions and their products with M.

    Attributes
    ----------
    directions : array of shape (m, d)
        As they were multiplied: rounded to the precision of the pass.
    images : array of shape (m, d)
    sums, scores : arrays of shape (m,)
        Bounds on both parts of the error of each image (`Rounding.parts`).
    """

    directions: np.ndarray
    images: np.ndarray
    sums: np.ndarray
    scores: np.ndarray

    def floor(self, largest: float) -> np.ndarray:
        """Return a bound on the error of each image (m,), for this largest eigenvalue of M."""
        return self.sums + self.scores * math.sqrt(largest)

    def split(self, count: int) -> tuple[BlockProducts, BlockProducts]:
        """Return the first `count` directions and the others."""
        return BlockProducts(*(part[:count] for part in self)), BlockProducts(
            *(part[count:] for part in self)
        )


def multiply(
    goal: Goal, block: np.ndarray, precision: Precision, task: str = "refinement"
) -> BlockProducts:
    """Multiply directions of at most unit length (m, d) by M.

    Parameters
    ----------
    goal : Goal
    block : array of shape (m, d)
        In float64.
    precision : Precision
    task : str
        Name of the pass, for progress.
    """
    if precision == "measured":
        rounded, images, errors = measured_products(goal, block, task)
        return BlockProducts(rounded, images, errors, np.zeros_like(errors))
    if precision == "float64":
        mean = None if goal.mean is None else gather(goal.mean).astype(np.float64)
        found = float64.products(goal.passes, block, mean, task)
        return BlockProducts(block, found.images, found.sums, found.scores)
    # Bounds for more features are those of compiled sums in chunks.
    if block.shape[1] < LONG and computed_on_host(goal):
        narrow = block.astype(np.float32)
        rounded, images = narrow.astype(np.float64), products_on_host(goal, narrow, task)
    else:
        there = goal.passes.placement.players(block.astype(goal.dtype))
        images = gather(image(goal.passes, there, goal.mean, task)).astype(np.float64)
        rounded = gather(there).astype(np.float64)
    values = np.sum(rounded * images, axis=1)
    return BlockProducts(rounded, images, *goal.rounding.parts(values))


def rounded_to(block: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the numbers of a block in another precision, as float64."""
    return block.astype(dtype).astype(np.float64)
