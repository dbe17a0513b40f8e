r"""Kernels for the two touches of width $d$ (see `eigengame.game.wide`), for one GPU.

Each program walks over tiles of columns. Rows are bfloat16; players are float32 and are split in the tile into
two bfloat16 parts, $v = v_0 + v_1$ with a remainder below $2^{-17}|v|$, so that all products go through the
tensor units and are exact before they are added up. Three things were measured to matter:

* Tensor units do not round sums, they cut them: adding up 20 million squares there loses 3e-4 of the total.
  So each tile is summed from zero and added to the total by an ordinary float32 addition. The compiler would
  fuse the two again, unless the tile's sum is multiplied by a 1 that it does not know.
* Coefficients are read before the loop: inside, every stage of the pipeline would hold a copy of them.
* As many programs as the card has processors, so that none waits for a last one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from eigengame.game.rows import full_product

TILE = 128
"""Columns of a tile."""

PARTS = 2
"""Parts in bfloat16 that a float32 is split into; coefficients are rounded to so many (`applied`)."""


def inner_products(
    wide: Sequence[jax.Array], rows: jax.Array, *, interpret: bool = False
) -> tuple[jax.Array, jax.Array]:
    r"""Return $XX^\top$ (m, m) and $XW^\top$ (m, K); W is players and at most one vector more."""
    (m, d), k = rows.shape, sum(map(len, wide))
    tiles, each, programs = _shares(d, TILE, 1)
    widths = [m, *(size for _, size in _pieces(k))]
    arrays = (*_flat(wide), rows, jnp.ones((1,), jnp.float32))
    shared = _called(
        functools.partial(_add_products, k=len(wide[0]), parts=len(wide), each=each, tiles=tiles),
        arrays,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct((programs, m, width), jnp.float32) for width in widths],
        out_specs=[pl.BlockSpec((None, m, width), lambda i: (i, 0, 0)) for width in widths],
        compiler_params=triton.CompilerParams(num_warps=8, num_stages=4 if k <= 32 else 3),
        interpret=interpret,
        name="inner_products",
    )
    square, *pieces = (jnp.sum(one, axis=0) for one in shared)
    across = jnp.concatenate(pieces, axis=1)[:, :k]
    done = tiles * TILE
    if done == d:
        return square, across
    rest = rows[:, done:].astype(jnp.float32)
    left = jnp.concatenate([part[:, done:] for part in wide])
    return square + full_product(rest, rest.T), across + full_product(rest, left.T)


def combined(
    turn: jax.Array,
    fresh: jax.Array,
    wide: Sequence[jax.Array],
    rows: jax.Array,
    *,
    interpret: bool = False,
) -> list[jax.Array]:
    r"""Return $PW + QX$ in the parts that W has."""
    (m, d), k = rows.shape, sum(map(len, wide))
    height = 32 if k <= 32 else 64
    # Beyond 48 players the stages of a whole tile and the coefficients do not fit into shared memory together.
    tile = TILE if k <= 48 else TILE // 2
    tiles, each, programs = _shares(d, tile, 1 if k <= 48 else 2)
    arrays = (*_flat(wide), rows, _split(turn, height, height), _split(fresh, height, m))
    moved = _called(
        functools.partial(
            _combine, k=len(wide[0]), parts=len(wide), each=each, tiles=tiles, tile=tile
        ),
        arrays,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct(part.shape, jnp.float32) for part in _flat(wide)],
        out_specs=[pl.no_block_spec] * len(wide),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=3),
        interpret=interpret,
        name="combined",
    )
    moved = [one.reshape(part.shape) for one, part in zip(moved, wide, strict=True)]
    done = tiles * tile
    if done == d:
        return moved
    rest = [*(part[:, done:] for part in wide), rows[:, done:].astype(jnp.float32)]
    left = full_product(jnp.concatenate([turn, fresh], axis=1), jnp.concatenate(rest))
    ends = jnp.split(left, [len(wide[0])])
    return [one.at[:, done:].set(end) for one, end in zip(moved, ends, strict=False)]


def _called(kernel: Callable[..., None], arrays: Sequence[jax.Array], **options: Any) -> Any:
    """Call a kernel that finds its tiles itself; its indices are 32 bits wide, whatever JAX is set to."""
    with jax.enable_x64(False):
        specs = [pl.no_block_spec] * len(arrays)
        return pl.pallas_call(kernel, in_specs=specs, **options)(*arrays)


def _add_products(*refs: Any, k: int, parts: int, each: int, tiles: int) -> None:
    """Add up one program's tiles: (m, m) of the rows, and (m, size) for each piece of W."""
    wide, (rows, one), outputs = refs[:parts], refs[parts : parts + 2], refs[parts + 2 :]
    unknown_one, program = one[0], pl.program_id(0)
    pieces = _pieces(k + parts - 1)

    def add(i: jax.Array, totals: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        columns = pl.ds(pl.multiple_of((program * each + i) * TILE, TILE), TILE)
        x = triton.load(rows.at[:, columns])
        new = [triton.dot(x, x, trans_b=True)]
        for begin, size in pieces:
            first, *others = _parts(_piece(wide, k, begin, size, columns))
            total = triton.dot(x, first, trans_b=True)
            for other in others:
                total = total + triton.dot(x, other, trans_b=True)
            new.append(total)
        return tuple(total + unknown_one * more for total, more in zip(totals, new, strict=True))

    zero = tuple(jnp.zeros(output.shape, jnp.float32) for output in outputs)
    own = jnp.minimum(each, tiles - program * each)
    totals = lax.fori_loop(0, own, add, zero)
    for output, total in zip(outputs, totals, strict=True):
        output[...] = total


def _combine(*refs: Any, k: int, parts: int, each: int, tiles: int, tile: int) -> None:
    """Combine one program's tiles: the product of the small coefficients with what lies under them."""
    wide, (rows, turns, fresh) = refs[:parts], refs[parts : parts + 3]
    outputs, program = refs[parts + 3 :], pl.program_id(0)
    height = turns.shape[0] // PARTS
    pieces = _pieces(k + parts - 1)
    of_rows = [triton.load(fresh.at[pl.ds(p * height, height), :]) for p in range(PARTS)]
    of_wide = [
        [triton.load(turns.at[pl.ds(p * height, height), pl.ds(*piece)]) for p in range(PARTS)]
        for piece in pieces
    ]

    def combine(i: jax.Array, nothing: jax.Array) -> jax.Array:
        columns = pl.ds(pl.multiple_of((program * each + i) * tile, tile), tile)
        x = triton.load(rows.at[:, columns])
        total = triton.dot(of_rows[0], x)
        for coefficients in of_rows[1:]:
            total = total + triton.dot(coefficients, x)
        for (begin, size), turn in zip(pieces, of_wide, strict=True):
            # A third part, lest what hardly moves loses its last bits in every update.
            split = _parts(_piece(wide, k, begin, size, columns), 3)
            for p, q in ((0, 0), (0, 1), (1, 0), (0, 2)):
                total = total + triton.dot(turn[p], split[q])
        if k == height:
            triton.store(outputs[0].at[:, columns], total)
            return nothing
        row, column = jnp.arange(height), columns.start + jnp.arange(tile)
        inside = _everywhere(row < k, tile)
        triton.store(outputs[0].at[row[:, None], column[None, :]], total, mask=inside)
        if parts == 2:
            vector = jnp.sum(jnp.where(_everywhere(row == k, tile), total, 0.0), axis=0)
            triton.store(outputs[1].at[columns], vector)
        return nothing

    lax.fori_loop(0, jnp.minimum(each, tiles - program * each), combine, jnp.int32(0))


def _piece(wide: Sequence[Any], k: int, begin: int, size: int, columns: Any) -> jax.Array:
    """Return some rows of W in a tile: players, the vector after the last of them, zeros beyond."""
    if begin + size <= k:
        return triton.load(wide[0].at[pl.ds(begin, size), columns])
    tile = columns.size
    row, column = begin + jnp.arange(size), columns.start + jnp.arange(tile)
    players = triton.load(
        wide[0].at[row[:, None], column[None, :]], mask=_everywhere(row < k, tile), other=0
    )
    if len(wide) == 1:
        return players
    vector = triton.load(wide[1].at[columns])
    own = jnp.broadcast_to(vector[None, :], (size, tile))
    return jnp.where(_everywhere(row == k, tile), own, players)


def _everywhere(which: jax.Array, tile: int) -> jax.Array:
    """Return a mask of rows as one of a whole tile."""
    return jnp.broadcast_to(which[:, None], (which.shape[0], tile))


def _parts(tile: jax.Array, count: int = PARTS) -> list[jax.Array]:
    """Return a float32 tile as parts in bfloat16 whose sum it is, each with 8 more of its bits."""
    parts, rest = [], tile
    for _ in range(count):
        parts.append(rest.astype(jnp.bfloat16))
        rest = rest - parts[-1].astype(jnp.float32)
    return parts


def applied(coefficients: jax.Array) -> jax.Array:
    """Return coefficients as `combined` applies them: rounded to the parts that it takes."""
    return sum(_coefficient_parts(coefficients), jnp.zeros_like(coefficients))


def _coefficient_parts(coefficients: jax.Array) -> list[jax.Array]:
    """Return float32 parts that bfloat16 can hold, whose sum the coefficients are but for rounding."""
    parts, rest = [], coefficients
    for _ in range(PARTS):
        # reduce_precision, since XLA may take a cast there and back for no cast at all.
        parts.append(lax.reduce_precision(rest, exponent_bits=8, mantissa_bits=7))
        rest = rest - parts[-1]
    return parts


def _split(coefficients: jax.Array, height: int, width: int) -> jax.Array:
    """Return small coefficients as their parts, one below the other, filled up with zeros."""
    k, columns = coefficients.shape
    filled = jnp.pad(coefficients, ((0, height - k), (0, width - columns)))
    return jnp.concatenate(_coefficient_parts(filled)).astype(jnp.bfloat16)


def _pieces(rows: int) -> list[tuple[int, int]]:
    """Return begins and sizes of pieces that kernels can load: powers of two, the last may reach beyond."""
    pieces, begin = [], 0
    while begin < rows:
        size = min(64, max(16, 1 << ((rows - begin).bit_length() - 1)))
        pieces.append((begin, size))
        begin += size
    return pieces


def _shares(d: int, tile: int, each_processor: int) -> tuple[int, int, int]:
    """Return the number of whole tiles, how many each program takes, and how many programs that makes."""
    tiles = d // tile
    programs = each_processor * getattr(jax.devices()[0], "core_count", 132)
    each = -(-tiles // programs)
    return tiles, each, -(-tiles // each)


def _flat(wide: Sequence[jax.Array]) -> list[jax.Array]:
    """Return the players as they are and the vector, a row alone, without its first axis."""
    return [wide[0], *(part[0] for part in wide[1:])]
