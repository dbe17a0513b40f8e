"""Arrays of which other processes hold a part, as plain ones.

Gathering is done together: every process must ask for the same array at the same time.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def spread(values: Any) -> bool:
    """Say whether some of an array lies in other processes alone."""
    return isinstance(values, jax.Array) and not (
        values.is_fully_addressable or values.is_fully_replicated
    )


def any_spread(tree: Any) -> bool:
    """Say whether any array of a tree is spread over processes."""
    return any(spread(leaf) for leaf in jax.tree.leaves(tree))


def whole(values: Any) -> np.ndarray:
    """Return all of an array, also what other processes have of it."""
    if spread(values):
        from jax.experimental import multihost_utils

        values = multihost_utils.process_allgather(values, tiled=True)
    return np.asarray(values)
