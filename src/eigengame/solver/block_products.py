"""Products of a block of directions with M by one pass, in float64 on the host with a bound on their errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eigengame.sharding.gather import gather
from eigengame.solver import float64_products as float64
from eigengame.solver.goal import Goal
from eigengame.solver.products import image


class BlockProducts(NamedTuple):
    """Directions and their products with M.

    Attributes
    ----------
    directions : array of shape (m, d)
        As they were multiplied: rounded to the precision of the pass.
    images : array of shape (m, d)
    floor : array of shape (m,)
        Bound on the error of each image.
    """

    directions: np.ndarray
    images: np.ndarray
    floor: np.ndarray

    def split(self, count: int) -> tuple[BlockProducts, BlockProducts]:
        """Return the first `count` directions and the others."""
        return BlockProducts(*(part[:count] for part in self)), BlockProducts(
            *(part[count:] for part in self)
        )


def multiply(
    goal: Goal, block: np.ndarray, *, precise: bool, largest: float = 0.0, task: str = "refinement"
) -> BlockProducts:
    """Multiply directions of at most unit length (m, d) by M.

    Parameters
    ----------
    goal : Goal
    block : array of shape (m, d)
        In float64.
    precise : bool
        Whether to multiply in float64 instead of the precision of the updates.
    largest : float
        Largest eigenvalue of M as far as it is known: errors grow with it.
    task : str
        Name of the pass, for progress.
    """
    if precise:
        mean = None if goal.mean is None else gather(goal.mean).astype(np.float64)
        found = float64.products(goal.passes, block, mean, task, largest=largest)
        return BlockProducts(block, found.images, found.floor)
    there = goal.passes.placement.players(block.astype(goal.dtype))
    images = gather(image(goal.passes, there, goal.mean, task)).astype(np.float64)
    rounded = gather(there).astype(np.float64)
    values = np.sum(rounded * images, axis=1)
    return BlockProducts(rounded, images, goal.rounding.of_products(values, largest=largest))


def rounded_to(block: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the numbers of a block in another precision, as float64."""
    return block.astype(dtype).astype(np.float64)
