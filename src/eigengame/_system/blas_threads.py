"""Number of threads of BLAS, which NumPy and SciPy use."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread: small problems are fastest on one."""
    return _libraries()[0].limit(limits=1, user_api="blas")


def all_blas_threads() -> AbstractContextManager[Any]:
    """Use as many threads as BLAS had at first: for large products within `one_blas_thread`."""
    libraries, most = _libraries()
    return libraries.limit(limits=most, user_api="blas")


@functools.cache
def _libraries() -> tuple[ThreadpoolController, int]:
    """Return the libraries with threads, and their number of threads at the first call.

    To find the libraries takes milliseconds, longer than a small batch.
    """
    found = ThreadpoolController()
    counts = [one["num_threads"] for one in found.info() if one["user_api"] == "blas"]
    return found, max(counts, default=1)
