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
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from eigengame.game.rows import full_product
from eigengame.game.tiles import (
    TILE,
    called,
    coefficient_parts,
    flat,
    load,
    parts_of,
    pieces_of,
    shares,
    split,
    store,
    tile_at,
    walk,
)

PARTS = 2
"""Parts in bfloat16 that a float32 is split into; coefficients are rounded to so many (`applied`)."""


def inner_products(
    wide: Sequence[jax.Array], rows: jax.Array, *, interpret: bool = False
) -> tuple[jax.Array, jax.Array]:
    r"""Return $XX^\top$ (m, m) and $XW^\top$ (m, K); W is players and at most one vector more."""
    square, across = _products(wide, rows, square=True, interpret=interpret)
    done = rows.shape[1] // TILE * TILE
    if done == rows.shape[1]:
        return square, across
    rest = rows[:, done:].astype(jnp.float32)
    return square + full_product(rest, rest.T), across


def scores(players: jax.Array, rows: jax.Array, *, interpret: bool = False) -> jax.Array:
    r"""Return $XV^\top$, shape (m, K)."""
    (found,) = _products([players], rows, square=False, interpret=interpret)
    return found


def _products(
    wide: Sequence[jax.Array], rows: jax.Array, *, square: bool, interpret: bool
) -> list[jax.Array]:
    r"""Return $XW^\top$ and before it, where wanted, $XX^\top$ of all whole tiles."""
    (m, d), k = rows.shape, sum(map(len, wide))
    tiles, each, programs = shares(d, TILE, 1)
    widths = [*((m,) if square else ()), *(size for _, size in pieces_of(k))]
    arrays = (*flat(wide), rows, jnp.ones((1,), jnp.float32))
    shared = called(
        functools.partial(
            _add_products, k=len(wide[0]), parts=len(wide), each=each, tiles=tiles, square=square
        ),
        arrays,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct((programs, m, width), jnp.float32) for width in widths],
        out_specs=[pl.BlockSpec((None, m, width), lambda i: (i, 0, 0)) for width in widths],
        compiler_params=triton.CompilerParams(num_warps=8, num_stages=4 if k <= 32 else 3),
        interpret=interpret,
        name="inner_products" if square else "scores",
    )
    sums = [jnp.sum(one, axis=0) for one in shared]
    squares, pieces = (sums[:1], sums[1:]) if square else ([], sums)
    across = jnp.concatenate(pieces, axis=1)[:, :k]
    done = tiles * TILE
    if done < d:
        left = jnp.concatenate([part[:, done:] for part in wide])
        across = across + full_product(rows[:, done:].astype(jnp.float32), left.T)
    return [*squares, across]


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
    # Half a tile and two programs a processor: a whole one's stages leave no room for a second.
    tile = TILE // 2
    tiles, each, programs = shares(d, tile, 2)
    height = sum(size for _, size in pieces_of(k))
    arrays = (*flat(wide), rows, split(turn, PARTS, height, height), split(fresh, PARTS, height, m))
    moved = called(
        functools.partial(
            _combine, k=len(wide[0]), parts=len(wide), each=each, tiles=tiles, tile=tile
        ),
        arrays,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct(part.shape, jnp.float32) for part in flat(wide)],
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


def _add_products(*refs: Any, k: int, parts: int, each: int, tiles: int, square: bool) -> None:
    """Add up one program's tiles: (m, m) of the rows where wanted, and (m, size) for each piece of W."""
    wide, (rows, one), outputs = refs[:parts], refs[parts : parts + 2], refs[parts + 2 :]
    unknown_one, program = one[0], pl.program_id(0)
    pieces = pieces_of(k + parts - 1)

    def add(i: jax.Array, totals: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        columns = tile_at(program * each + i, TILE)
        x = triton.load(rows.at[:, columns])
        new = [triton.dot(x, x, trans_b=True)] if square else []
        for piece in pieces:
            first, *others = parts_of(load(wide, k, *piece, columns), PARTS)
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
    outputs, pieces = refs[parts + 3 :], pieces_of(k + parts - 1)
    height = turns.shape[0] // PARTS

    def loaded(ref: Any, to: tuple[int, int], *columns: Any) -> list[jax.Array]:
        """Return the parts of coefficients that make the rows `to`."""
        begins = [p * height + to[0] for p in range(PARTS)]
        return [triton.load(ref.at[pl.ds(begin, to[1]), *columns]) for begin in begins]

    of_rows = [loaded(fresh, to, slice(None)) for to in pieces]
    of_wide = [[loaded(turns, to, pl.ds(*of)) for of in pieces] for to in pieces]

    def combine(columns: Any) -> None:
        x = triton.load(rows.at[:, columns])
        # A third part, lest what hardly moves loses its last bits in every update.
        under = [parts_of(load(wide, k, *of, columns), PARTS + 1) for of in pieces]
        for to, row_turns, turns_of in zip(pieces, of_rows, of_wide, strict=True):
            # What is small comes first, and a piece's own players last: sums are cut by as much as they are large.
            total = triton.dot(row_turns[1], x)
            total = total + triton.dot(row_turns[0], x)
            last = sorted(zip(pieces, turns_of, under, strict=True), key=lambda one: one[0] == to)
            for p, q in ((0, 2), (1, 0), (0, 1), (0, 0)):
                for _, turn, parted in last:
                    total = total + triton.dot(turn[p], parted[q])
            store(outputs, k, *to, columns, total)

    walk(tile, each, tiles, combine)


def applied(coefficients: jax.Array) -> jax.Array:
    """Return coefficients as `combined` applies them: rounded to the parts that it takes."""
    return sum(coefficient_parts(coefficients, PARTS), jnp.zeros_like(coefficients))
