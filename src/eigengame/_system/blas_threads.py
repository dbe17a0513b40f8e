"""Number of threads of BLAS, which NumPy and SciPy use.

The number belongs to the whole process, so fits in several threads share it: it is reduced when the first of them
begins, and restored when the last one ends.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import threadpoolctl

LARGE = 1024
"""Size of a matrix from which several BLAS threads are faster than one."""


class _Shared:
    """Number of users that need one thread, number of users that need all, and the present limit.

    Attributes
    ----------
    lock : Lock
    one, all : int
    limit : limiter of threadpoolctl or None
        Restores the original numbers of threads; None while they are in force.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.one, self.all = 0, 0
        self.limit: Any = None

    def add(self, one: int = 0, all: int = 0) -> None:
        """Change the numbers of users, and the number of threads with them."""
        with self.lock:
            self.one, self.all = self.one + one, self.all + all
            limited = self.one > 0 and self.all == 0
            if limited == (self.limit is not None):
                return
            _release_control()
            if limited:
                self.limit = _libraries()[0].limit(limits=1, user_api="blas")
            else:
                self.limit.restore_original_limits()
                self.limit = None
            _release_control()


_shared = _Shared()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one thread: small problems are fastest on one."""
    _shared.add(one=1)
    try:
        yield
    finally:
        _shared.add(one=-1)


@contextlib.contextmanager
def all_blas_threads() -> Iterator[None]:
    """Use as many threads as before `one_blas_thread`: for large products within it."""
    _shared.add(all=1)
    try:
        yield
    finally:
        _shared.add(all=-1)


def threads_for(size: int) -> contextlib.AbstractContextManager[Any]:
    """Use several BLAS threads for matrices of this size, if it is large."""
    return all_blas_threads() if size >= LARGE else contextlib.nullcontext()


def _release_control() -> None:
    """Let any thread set the number of threads.

    Newer versions of threadpoolctl ignore all threads but the first to set it, so the last fit to end could not
    restore it.
    """
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


def blas_threads() -> int:
    """Return the number of threads that BLAS had at first."""
    return _libraries()[1]


@functools.cache
def _libraries() -> tuple[threadpoolctl.ThreadpoolController, int]:
    """Return the libraries with threads, and their number of threads at the first call.

    To find the libraries takes milliseconds, longer than a small batch.
    """
    found = threadpoolctl.ThreadpoolController()
    counts = [one["num_threads"] for one in found.info() if one["user_api"] == "blas"]
    return found, max(counts, default=1)
