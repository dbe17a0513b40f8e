"""Operations over width d for players in host memory, in blocks of features.

Used when the players do not fit on the device. Each update copies every block to the device twice and back once:
some tenths of a second for gigabytes of players. The device only holds the batch and one block.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.wide import WideOperations, combined, inner_products

BLOCK = 2**20
"""Features in a block."""


def _blocks(wide: Sequence[Any], rows: jax.Array) -> Iterator[tuple[slice, list[Any], jax.Array]]:
    """Yield the columns of each block, and these columns of the vectors and of the rows."""
    for begin in range(0, rows.shape[1], BLOCK):
        columns = slice(begin, begin + BLOCK)
        yield columns, [np.asarray(part[:, columns]) for part in wide], rows[:, columns]


def _inner_products(wide: Sequence[Any], rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return products of the rows with each other and with the vectors, summed over blocks."""
    square, across = (jnp.zeros(()),) * 2
    for _, parts, own in _blocks(wide, rows):
        block_square, block_across = _inner_products_of_block(parts, own)
        square, across = square + block_square, across + block_across
    return square, across


def _combined(
    coefficients: jax.Array, lengths: jax.Array, wide: Sequence[Any], rows: jax.Array
) -> tuple[list[Any], jax.Array]:
    """Return linear combinations of vectors and rows in host memory, and the rounded coefficients."""
    moved, applied = [np.empty(part.shape, part.dtype) for part in wide], []
    for columns, parts, own in _blocks(wide, rows):
        new, rounded = _combined_of_block(coefficients, lengths, parts, own)
        applied.append(rounded)
        for whole, part in zip(moved, new, strict=True):
            whole[:, columns] = part
    # Every block rounds the coefficients in the same way.
    return moved, applied[0]


def _overlaps(wide: Sequence[Any]) -> jax.Array:
    """Return inner products of the vectors, with sums over blocks in float64."""
    total = np.zeros(())
    for begin in range(0, wide[0].shape[1], BLOCK):
        stacked = np.concatenate([np.asarray(part[:, begin : begin + BLOCK]) for part in wide])
        total = total + (stacked @ stacked.T).astype(np.float64)
    return jnp.asarray(total, wide[0].dtype)


_inner_products_of_block = jax.jit(inner_products)
_combined_of_block = jax.jit(combined)

# Cached by function, so that each function is compiled once and not in every update.
_compiled = functools.cache(functools.partial(jax.jit, static_argnums=0))

ON_HOST = WideOperations(_inner_products, _combined, _overlaps, _compiled)
"""Operations for vectors in host memory and rows in device memory."""


def reorthonormalise(players: np.ndarray) -> np.ndarray:
    r"""Return nearly orthonormal players, corrected: $\frac12(3I - VV^\top)V$ (see `linalg.orthonormal`)."""
    turn = 1.5 * np.eye(len(players)) - 0.5 * np.asarray(_overlaps([players]), np.float64)
    return turn.astype(players.dtype) @ players
