"""Gathering of arrays that are distributed over processes.

Gathering is collective: every process must call it for the same array at the same time.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

PREFETCHED = 2**22
"""Largest size of an array that is transferred before it is needed."""


def is_distributed(values: Any) -> bool:
    """Return whether parts of an array exist only in other processes."""
    return isinstance(values, jax.Array) and not (
        values.is_fully_addressable or values.is_fully_replicated
    )


def any_distributed(tree: Any) -> bool:
    """Return whether any array of a tree is distributed over processes."""
    return any(is_distributed(leaf) for leaf in jax.tree.leaves(tree))


def prefetch(tree: Any) -> Any:
    """Return a tree unchanged, and begin to transfer its arrays to the host, unless they are large.

    Each transfer takes little time but waits for the device: together they wait once.
    """
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and leaf.is_fully_addressable and leaf.size <= PREFETCHED:
            leaf.copy_to_host_async()
    return tree


def gather(values: Any) -> np.ndarray:
    """Return an array as NumPy array, including the parts in other processes."""
    if is_distributed(values):
        from jax.experimental import multihost_utils

        values = multihost_utils.process_allgather(values, tiled=True)
    return np.asarray(values)
