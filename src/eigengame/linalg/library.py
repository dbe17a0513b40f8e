"""One implementation for two array libraries: JAX on devices, NumPy on the host.

Updates of sparse rows on a CPU run in NumPy: their products are those of SciPy, which XLA cannot compile. So
nothing is compiled at the first fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def array_namespace(array: Any) -> Any:
    """Return `numpy` for an array of NumPy, and `jax.numpy` for any other."""
    return np if isinstance(array, np.ndarray | np.generic) else jnp


def cond(
    condition: Any, first: Callable[..., Any], second: Callable[..., Any], *operands: Any
) -> Any:
    """Return `first(*operands)` or `second(*operands)`: `jax.lax.cond`, or a plain branch for NumPy."""
    if array_namespace(condition) is np:
        return (first if condition else second)(*operands)
    return jax.lax.cond(condition, first, second, *operands)


def fori_loop(begin: int, end: Any, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """Return the result of `body(i, carry)` for i from `begin` to `end`: `jax.lax.fori_loop`, or a plain loop."""
    if array_namespace(end) is not np:
        return jax.lax.fori_loop(begin, end, body, start)
    for i in range(begin, int(end)):
        start = body(i, start)
    return start


def host_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return `left @ right` of NumPy arrays, with the memory order of `right`.

    Sparse products take players (K, d) in column-major order; results keep it, so that nothing is transposed.
    """
    if right.flags.f_contiguous and not right.flags.c_contiguous:
        return np.asarray((right.T @ left.T).T)
    return np.asarray(left @ right)
