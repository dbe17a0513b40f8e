"""JAX arrays: on the host they are arrays like any other."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame.sources.arrays import ArraySource


def from_jax(data: Any, name: str = "X") -> ArraySource:
    """Return the source of a JAX array."""
    return ArraySource(np.asarray(data), name)
