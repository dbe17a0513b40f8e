"""Copies of arrays at addresses that JAX can use as they are, in memory that is used again.

On a CPU, JAX takes an array of NumPy without a copy if its address is a multiple of 64. Large arrays of NumPy
usually are not at such an address, and JAX copies each batch of them into new memory, which the system has to clear
first. Copying it into memory that an earlier batch had takes less time.
"""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np

ALIGNMENT = 64
"""Bytes."""

MOST_KEPT = 2
"""Copies whose memory is kept: that of the batch in use, and of the next one."""

LEAST_BYTES = 2**20
"""Smaller arrays are left as they are: the allocator keeps their memory."""

MOST_BYTES = 2**26
"""Larger arrays are left as they are, so that little memory is kept."""


class AlignedCopies:
    """Memory for aligned copies of arrays, which is used again.

    The memory of a copy is used again when the copy and all its views are garbage. An array of JAX that shares the
    memory, and every computation with it, holds the copy until it is done.
    """

    def __init__(self) -> None:
        self._free: list[np.ndarray] = []

    def aligned(self, values: np.ndarray) -> np.ndarray:
        """Return an array itself if it is aligned, small or very large, else an aligned copy."""
        if not LEAST_BYTES <= values.nbytes <= MOST_BYTES or is_aligned(values):
            return values
        memory = self._memory(values.nbytes)
        loan = _Loan(memory.view(values.dtype).reshape(values.shape))
        copy = np.asarray(loan)
        np.copyto(copy, values)
        weakref.finalize(loan, self._keep, memory).atexit = False
        return copy

    def _memory(self, size: int) -> np.ndarray:
        """Return aligned memory of this many bytes, shape (size,)."""
        while self._free:
            memory = self._free.pop()
            if len(memory) == size:  # else the size of batches has changed
                return memory
        room = np.empty(size + ALIGNMENT, np.uint8)
        begin = -room.ctypes.data % ALIGNMENT
        return room[begin : begin + size]

    def _keep(self, memory: np.ndarray) -> None:
        if len(self._free) < MOST_KEPT:
            self._free.append(memory)


class _Loan:
    """Owner of the memory of one copy. NumPy lets views refer to it, but not to an array that is a view itself."""

    def __init__(self, values: np.ndarray) -> None:
        self.__array_interface__ = values.__array_interface__
        self._values = values


def is_aligned(values: np.ndarray) -> bool:
    """Return whether JAX can use an array on a CPU without a copy."""
    return values.flags.c_contiguous and values.ctypes.data % ALIGNMENT == 0


def is_mapped(values: Any) -> bool:
    """Return whether an array is a view of a memory map, which begins at a page."""
    while values is not None and not isinstance(values, mmap.mmap):
        values = values.obj if isinstance(values, memoryview) else getattr(values, "base", None)
    return values is not None
