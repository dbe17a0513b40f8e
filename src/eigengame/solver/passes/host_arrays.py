"""Steps on the host: functions of NumPy arrays within a pass whose carry is on a device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from eigengame._system.blas_threads import all_blas_threads

LARGE = 2**22
"""Size of the largest array from which BLAS uses all threads. Threads that wait for small products cost more."""


def on_host(function: Callable[..., Any], rows: Any, *arguments: Any) -> Any:
    """Return `function(rows, *arguments)` with its arguments and results as NumPy arrays.

    NaN and infinity are not reported here: a pass refuses them by the scatter of the features.
    """
    there = jax.tree.map(np.asarray, arguments)
    with np.errstate(all="ignore"), _threads(there):
        return function(rows, *there)


def on_device(tree: Any) -> Any:
    """Return a tree of NumPy arrays as arrays of JAX, in row-major order."""
    return jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf, order="C")), tree)


def _threads(tree: Any) -> AbstractContextManager[Any]:
    """Return the context for BLAS: small products are fastest on one thread."""
    largest = max((leaf.size for leaf in jax.tree.leaves(tree)), default=0)
    return all_blas_threads() if largest >= LARGE else nullcontext()
