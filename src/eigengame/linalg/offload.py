"""Players that a device has no room for: they lie on the host, and are touched in blocks of features.

Each update sends every block to the device twice and fetches it once. That is slow, some tenths of a second for
gigabytes of players, and takes no more of the device than the batch and a block.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.wide import Touches, combined, inner_products

BLOCK = 2**20
"""Features of a block."""


def _blocks(wide: Sequence[Any], rows: jax.Array) -> Iterator[tuple[slice, list[Any], jax.Array]]:
    """Give the columns of each block, and what the vectors and the rows have there."""
    for begin in range(0, rows.shape[1], BLOCK):
        columns = slice(begin, begin + BLOCK)
        yield columns, [np.asarray(part[:, columns]) for part in wide], rows[:, columns]


def _inner_products(wide: Sequence[Any], rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return products of the rows with each other and with the vectors, added up block by block."""
    square, across = (jnp.zeros(()),) * 2
    for _, parts, own in _blocks(wide, rows):
        of_rows, of_both = _products(parts, own)
        square, across = square + of_rows, across + of_both
    return square, across


def _combined(
    coefficients: jax.Array, lengths: jax.Array, wide: Sequence[Any], rows: jax.Array
) -> tuple[list[Any], jax.Array]:
    """Return combinations of vectors and rows, on the host, and coefficients as the first block applied them."""
    moved, applied = [np.empty(part.shape, part.dtype) for part in wide], []
    for columns, parts, own in _blocks(wide, rows):
        made, rounded = _combine(coefficients, lengths, parts, own)
        applied.append(rounded)
        for whole, part in zip(moved, made, strict=True):
            whole[:, columns] = part
    return moved, applied[0]


def _overlaps(wide: Sequence[Any]) -> jax.Array:
    """Return inner products of the vectors, summed in float64 between blocks."""
    total = np.zeros(())
    for begin in range(0, wide[0].shape[1], BLOCK):
        stacked = np.concatenate([np.asarray(part[:, begin : begin + BLOCK]) for part in wide])
        total = total + (stacked @ stacked.T).astype(np.float64)
    return jnp.asarray(total, wide[0].dtype)


_products = jax.jit(inner_products)
_combine = jax.jit(combined)

# Kept by function: a form made anew for each update would be compiled anew.
_compiled = functools.cache(functools.partial(jax.jit, static_argnums=0))

ON_HOST = Touches(_inner_products, _combined, _overlaps, _compiled)
"""Of vectors on the host, and rows on the device."""


def orthonormal(players: np.ndarray) -> np.ndarray:
    r"""Return players that drifted a little, made orthonormal: $\frac12(3I - VV^\top)V$."""
    turn = 1.5 * np.eye(len(players)) - 0.5 * np.asarray(_overlaps([players]), np.float64)
    return turn.astype(players.dtype) @ players
