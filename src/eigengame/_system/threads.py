"""Work in several threads: products of NumPy and SciPy release the lock of the interpreter.

A fit limits BLAS to one thread (`blas_threads`). Threads that multiply parts of the rows are faster than those of
BLAS, and share the work on the elements of arrays as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import numpy as np

from eigengame._system.blas_threads import blas_threads

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_threads(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Return the function of each part. The first one runs in this thread, the others run beside it.

    NaN and infinity are not reported.
    """

    def run(part: Part) -> Result:
        with np.errstate(all="ignore"):  # the setting belongs to a thread
            return function(part)

    others = [_pool().submit(run, part) for part in parts[1:]]
    return [run(parts[0]), *(other.result() for other in others)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, blas_threads() - 1), thread_name_prefix="eigengame products")
