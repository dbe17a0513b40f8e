"""Functions shared by the kernels that loop over tiles of columns: work division, loads, stores and splitting.

Tensor cores multiply a float32 in parts, shorter numbers whose sum it is. Two parts of bfloat16 hold 16 of its 24
bits and three hold all; two of float16 hold 22, within the range of float16.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

TILE = 128
"""Columns of a tile."""

TALL = 64
"""Rows that tensor cores compute at once; products with fewer rows are slower."""


def called(kernel: Callable[..., None], arrays: Sequence[jax.Array], **options: Any) -> Any:
    """Call a kernel that loads its own tiles, with 32-bit indices also if JAX is set to 64 bits."""
    with jax.enable_x64(False):
        specs = [pl.no_block_spec] * len(arrays)
        return pl.pallas_call(kernel, in_specs=specs, **options)(*arrays)


def shares(d: int, tile: int, each_processor: int) -> tuple[int, int, int]:
    """Return the number of whole tiles, of tiles per program, and of programs."""
    tiles = d // tile
    programs = each_processor * getattr(jax.devices()[0], "core_count", 132)
    each = -(-tiles // programs)
    return tiles, each, -(-tiles // each)


def walk(tile: int, each: int, tiles: int, step: Callable[[Any], None]) -> None:
    """Call `step` for each of this program's tiles of columns."""
    program = pl.program_id(0)

    def take(i: jax.Array, nothing: jax.Array) -> jax.Array:
        step(tile_at(program * each + i, tile))
        return nothing

    lax.fori_loop(0, jnp.minimum(each, tiles - program * each), take, jnp.int32(0))


def sum_tiles(
    outputs: Sequence[Any],
    unknown_one: jax.Array,
    tile: int,
    each: int,
    tiles: int,
    products: Callable[[Any], list[jax.Array]],
) -> None:
    """Write the sums of `products(columns)` over this program's tiles of columns.

    Tensor cores truncate sums instead of rounding them: a sum of 20 million squares loses 3e-4 of its value. So
    each tile is summed from zero and added to the total by a float32 addition. To keep the compiler from fusing the
    two, the tile's sum is multiplied by a 1 whose value it does not know.
    """
    program = pl.program_id(0)

    def add(i: jax.Array, totals: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        new = products(tile_at(program * each + i, tile))
        return tuple(total + unknown_one * more for total, more in zip(totals, new, strict=True))

    zero = tuple(jnp.zeros(output.shape, jnp.float32) for output in outputs)
    totals = lax.fori_loop(0, jnp.minimum(each, tiles - program * each), add, zero)
    for output, total in zip(outputs, totals, strict=True):
        output[...] = total


def tile_at(number: jax.Array, tile: int) -> Any:
    """Return the columns of a tile."""
    return pl.ds(pl.multiple_of(number * tile, tile), tile)


def pieces_of(rows: int) -> list[tuple[int, int]]:
    """Return starts and sizes of pieces that kernels can load: powers of two, the last possibly too long."""
    pieces, begin = [], 0
    while begin < rows:
        size = min(64, max(16, 1 << ((rows - begin).bit_length() - 1)))
        pieces.append((begin, size))
        begin += size
    return pieces


def load(wide: Sequence[Any], k: int, begin: int, size: int, columns: Any) -> jax.Array:
    """Load some rows of W in a tile: players, then the further vector, then zeros."""
    if begin + size <= k:
        return triton.load(wide[0].at[pl.ds(begin, size), columns])
    row, across = _places(begin, size, columns)
    players = triton.load(wide[0].at[row, across], mask=row < k, other=0)
    if len(wide) == 1:
        return players
    vector = triton.load(wide[1].at[pl.ds(0, 1), columns])
    return jnp.where(row == k, jnp.broadcast_to(vector, row.shape), players)


def store(
    outputs: Sequence[Any], k: int, begin: int, size: int, columns: Any, tile: jax.Array
) -> None:
    """Store some rows of W' in a tile: players, then the further vector."""
    if begin + size <= k:
        triton.store(outputs[0].at[pl.ds(begin, size), columns], tile)
        return
    row, across = _places(begin, size, columns)
    triton.store(outputs[0].at[row, across], tile, mask=row < k)
    if len(outputs) == 2 and begin <= k:
        # By a mask: a sum over the rows would move data between threads. Other rows get an index out of range.
        triton.store(outputs[1].at[jnp.where(row == k, 0, 1), across], tile, mask=row == k)


def _places(begin: int, size: int, columns: Any) -> tuple[jax.Array, jax.Array]:
    """Return the row and the column of each entry of a tile."""
    row, across = begin + jnp.arange(size), columns.start + jnp.arange(columns.size)
    shape = (size, columns.size)
    return jnp.broadcast_to(row[:, None], shape), jnp.broadcast_to(across[None, :], shape)


def added_up(products: Iterable[jax.Array]) -> jax.Array:
    """Return the sum of products, added by the tensor cores in this order."""
    return functools.reduce(operator.add, products)


def parts_of(tile: jax.Array, count: int, dtype: Any = jnp.bfloat16) -> list[jax.Array]:
    """Split a float32 tile into parts of a shorter dtype, from the highest bits to the lowest."""
    parts, rest = [], tile
    for _ in range(count):
        parts.append(rest.astype(dtype))
        rest = rest - parts[-1].astype(jnp.float32)
    return parts


def coefficient_parts(
    coefficients: jax.Array, count: int, dtype: Any = jnp.bfloat16
) -> list[jax.Array]:
    """Split coefficients into float32 parts that a shorter dtype can represent."""
    held, parts, rest = jnp.finfo(dtype), [], coefficients
    for _ in range(count):
        # reduce_precision, since XLA may remove a cast to a shorter dtype and back.
        parts.append(lax.reduce_precision(rest, held.nexp, held.nmant))
        rest = rest - parts[-1]
    return parts


def split(
    coefficients: jax.Array, count: int, height: int, width: int, dtype: Any = jnp.bfloat16
) -> jax.Array:
    """Return the parts of small coefficients, stacked and padded with zeros."""
    k, columns = coefficients.shape
    filled = jnp.pad(coefficients, ((0, height - k), (0, width - columns)))
    return jnp.concatenate(coefficient_parts(filled, count, dtype)).astype(dtype)


def power_above(sizes: jax.Array) -> jax.Array:
    """Return the next power of two above each size, or 1 for zero: scaling by it does not round."""
    _, exponents = jnp.frexp(sizes)
    return jnp.ldexp(jnp.ones_like(sizes), exponents)
