"""What kernels that walk over tiles of columns have in common: their shares, their loads, their roundings.

A float32 is multiplied on the tensor units in parts, bfloat16 numbers whose sum it is: two hold 16 of its bits,
three all 24.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

TILE = 128
"""Columns of a tile."""


def called(kernel: Callable[..., None], arrays: Sequence[jax.Array], **options: Any) -> Any:
    """Call a kernel that finds its tiles itself; its indices are 32 bits wide, whatever JAX is set to."""
    with jax.enable_x64(False):
        specs = [pl.no_block_spec] * len(arrays)
        return pl.pallas_call(kernel, in_specs=specs, **options)(*arrays)


def shares(d: int, tile: int, each_processor: int) -> tuple[int, int, int]:
    """Return the number of whole tiles, how many each program takes, and how many programs that makes."""
    tiles = d // tile
    programs = each_processor * getattr(jax.devices()[0], "core_count", 132)
    each = -(-tiles // programs)
    return tiles, each, -(-tiles // each)


def walk(tile: int, each: int, tiles: int, step: Callable[[Any], None]) -> None:
    """Take one step for each tile of columns that is this program's."""
    program = pl.program_id(0)

    def take(i: jax.Array, nothing: jax.Array) -> jax.Array:
        step(tile_at(program * each + i, tile))
        return nothing

    lax.fori_loop(0, jnp.minimum(each, tiles - program * each), take, jnp.int32(0))


def tile_at(number: jax.Array, tile: int) -> Any:
    """Return the columns of a tile."""
    return pl.ds(pl.multiple_of(number * tile, tile), tile)


def pieces_of(rows: int) -> list[tuple[int, int]]:
    """Return begins and sizes of pieces that kernels can load: powers of two, the last may reach beyond."""
    pieces, begin = [], 0
    while begin < rows:
        size = min(64, max(16, 1 << ((rows - begin).bit_length() - 1)))
        pieces.append((begin, size))
        begin += size
    return pieces


def flat(wide: Sequence[jax.Array]) -> list[jax.Array]:
    """Return the players as they are and the vector, a row alone, without its first axis."""
    return [wide[0], *(part[0] for part in wide[1:])]


def load(wide: Sequence[Any], k: int, begin: int, size: int, columns: Any) -> jax.Array:
    """Return some rows of W in a tile: players, the vector after the last of them, zeros beyond."""
    if begin + size <= k:
        return triton.load(wide[0].at[pl.ds(begin, size), columns])
    tile = columns.size
    row, column = begin + jnp.arange(size), columns.start + jnp.arange(tile)
    players = triton.load(
        wide[0].at[row[:, None], column[None, :]], mask=everywhere(row < k, tile), other=0
    )
    if len(wide) == 1:
        return players
    vector = triton.load(wide[1].at[columns])
    own = jnp.broadcast_to(vector[None, :], (size, tile))
    return jnp.where(everywhere(row == k, tile), own, players)


def store(
    outputs: Sequence[Any], k: int, begin: int, size: int, columns: Any, tile: jax.Array
) -> None:
    """Write some rows of W' in a tile: players, and the vector after the last of them."""
    if begin + size <= k:
        triton.store(outputs[0].at[pl.ds(begin, size), columns], tile)
        return
    width = columns.size
    row, column = begin + jnp.arange(size), columns.start + jnp.arange(width)
    inside = everywhere(row < k, width)
    triton.store(outputs[0].at[row[:, None], column[None, :]], tile, mask=inside)
    if len(outputs) == 2 and begin <= k:
        vector = jnp.sum(jnp.where(everywhere(row == k, width), tile, 0.0), axis=0)
        triton.store(outputs[1].at[columns], vector)


def everywhere(which: jax.Array, tile: int) -> jax.Array:
    """Return a mask of rows as one of a whole tile."""
    return jnp.broadcast_to(which[:, None], (which.shape[0], tile))


def parts_of(tile: jax.Array, count: int) -> list[jax.Array]:
    """Return a float32 tile as parts in bfloat16 whose sum it is, each with 8 more of its bits."""
    parts, rest = [], tile
    for _ in range(count):
        parts.append(rest.astype(jnp.bfloat16))
        rest = rest - parts[-1].astype(jnp.float32)
    return parts


def coefficient_parts(coefficients: jax.Array, count: int) -> list[jax.Array]:
    """Return float32 parts that bfloat16 can hold, whose sum the coefficients are but for rounding."""
    parts, rest = [], coefficients
    for _ in range(count):
        # reduce_precision, since XLA may take a cast there and back for no cast at all.
        parts.append(lax.reduce_precision(rest, exponent_bits=8, mantissa_bits=7))
        rest = rest - parts[-1]
    return parts


def split(coefficients: jax.Array, count: int, height: int, width: int) -> jax.Array:
    """Return small coefficients as their parts, one below the other, filled up with zeros."""
    k, columns = coefficients.shape
    filled = jnp.pad(coefficients, ((0, height - k), (0, width - columns)))
    return jnp.concatenate(coefficient_parts(filled, count)).astype(jnp.bfloat16)
