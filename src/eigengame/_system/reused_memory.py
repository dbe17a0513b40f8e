"""Memory of blocks that is used again: fresh pages from the system cost as much time as reading a cached file."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

ALIGNMENT = 64
"""Bytes to which arrays are aligned, so that JAX on a CPU uses them without a copy."""

MOST = 5
"""Number of arrays whose memory is kept: those read ahead, in use and being filled."""


class ReusedMemory:
    """Aligned arrays, whose memory is used again once nothing refers to it.

    Every view of an array refers to the object that owns its memory, and so does JAX while it uses it. The memory
    is free if the number of references to that object is as low as before the first view existed.
    """

    def __init__(self) -> None:
        self._owners: list[np.ndarray] = []
        self._alone: list[int] = []

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an uninitialised array."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        place = self._free_place(size + ALIGNMENT)
        if place is None:
            return aligned_empty(shape, dtype)
        return _aligned(self._owners[place], shape, dtype)

    def _free_place(self, size: int) -> int | None:
        """Return the position of memory of at least `size` bytes; None if all of it is in use."""
        for place in range(len(self._owners)):
            if len(self._owners[place]) >= size and self._references(place) <= self._alone[place]:
                return place
        if len(self._owners) == MOST:
            return None
        self._owners.append(np.empty(size, np.uint8))
        self._alone.append(self._references(len(self._owners) - 1))
        return len(self._owners) - 1

    def _references(self, place: int) -> int:
        return sys.getrefcount(self._owners[place])


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an uninitialised array aligned to 64 bytes, which JAX on a CPU uses without a copy."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return _aligned(np.empty(size + ALIGNMENT, np.uint8), shape, dtype)


def _aligned(owner: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array in memory of at least `ALIGNMENT` bytes more than it needs."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    begin = -owner.ctypes.data % ALIGNMENT
    return owner[begin : begin + size].view(dtype).reshape(shape)
