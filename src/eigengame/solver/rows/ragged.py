"""Sizes of arrays that are padded so that calls with different numbers of rows share their compilations."""

from __future__ import annotations

import math

SHAPES = 12
"""Largest number of different sizes, and so of compilations, whatever the numbers of rows."""

LEAST_ROWS = 8
"""Smallest size of a batch."""

LEAST_ENTRIES = 64
"""Smallest number of entries of a sparse batch."""


def shared_size(count: int, least: int, most: int) -> int:
    """Return the smallest of a few sizes that holds `count`, or `most` if none does.

    Each size is twice the one before, or more than twice if there would be more than `SHAPES` sizes.

    Parameters
    ----------
    count : int
    least, most : int
        The smallest and the largest size.
    """
    ratio = max(2.0, (most / least) ** (1 / (SHAPES - 1)))
    smaller = (math.ceil(least * ratio**i) for i in range(SHAPES - 1))
    return next((size for size in smaller if count <= size < most), most)
