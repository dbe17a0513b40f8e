"""Steps on the host: functions of NumPy arrays within a pass whose carry is on a device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from eigengame._system.blas_threads import all_blas_threads

LARGE = 2**22
"""Size of the largest array from which BLAS uses all threads. Threads that wait for small products cost more."""


def on_host(
    function: Callable[..., Any], rows: Any, *arguments: Any, all_threads: bool | None = None
) -> Any:
    """Return `function(rows, *arguments)` with its arguments and results as NumPy arrays.

    NaN and infinity are not reported here: a pass refuses them by the scatter of the features. With `all_threads`
    BLAS uses all of them; by default the sizes of the arrays decide it.
    """
    there = jax.tree.map(np.asarray, arguments)
    several = _large(there) if all_threads is None else all_threads
    # Small products are fastest on one thread.
    threads = all_blas_threads() if several else nullcontext()
    with np.errstate(all="ignore"), threads:
        return function(rows, *there)


def on_device(tree: Any) -> Any:
    """Return a tree of NumPy arrays as arrays of JAX, in row-major order."""
    return jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf, order="C")), tree)


def _large(tree: Any) -> bool:
    """Return whether BLAS should use all threads for arrays of this size."""
    return max((leaf.size for leaf in jax.tree.leaves(tree)), default=0) >= LARGE
