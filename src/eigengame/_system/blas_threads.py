"""Number of threads of BLAS, which NumPy and SciPy use."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread: small problems are fastest on one."""
    return _libraries()[0].limit(limits=1, user_api="blas")


def all_blas_threads() -> AbstractContextManager[Any]:
    """Use as many threads as BLAS had at first, at most one for each core: for large products.

    In a container BLAS may have begun with the number of cores of the whole machine.
    """
    libraries, most = _libraries()
    return libraries.limit(limits=most, user_api="blas")


def blas_threads() -> int:
    """Return the number of threads of `all_blas_threads`."""
    return _libraries()[1]


@functools.cache
def _libraries() -> tuple[ThreadpoolController, int]:
    """Return the libraries with threads, and their number of threads at the first call.

    To find the libraries takes milliseconds, longer than a small batch.
    """
    found = ThreadpoolController()
    counts = [one["num_threads"] for one in found.info() if one["user_api"] == "blas"]
    return found, min(max(counts, default=1), joblib.cpu_count())
