r"""Kernels for the two touches of width $d$ (see `eigengame.linalg.wide`), for one GPU.

Each program walks over tiles of columns. Rows are bfloat16; players are float32 and are split in the tile into
two parts, $v = v_0 + v_1$, so that all products go through the tensor units and are exact before they are added
up: for products with rows in bfloat16, with a remainder below $2^{-17}|v|$, and where players are made of players
in float16, with one below $2^{-23}|v|$, in units in which float16 has its range. What was measured to matter:

* Tensor units truncate sums instead of rounding them, so no sum there is long (see `tiles.sum_tiles`).
* Coefficients are read before the loop: inside, every stage of the pipeline would hold a copy of them.
* Tensor units make 64 rows at once, in half the time that they take for 48 in pieces.
* As many programs as the card has processors, so that none waits for a last one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from eigengame.linalg.kernels.tiles import (
    TALL,
    TILE,
    added_up,
    called,
    coefficient_parts,
    load,
    parts_of,
    pieces_of,
    power_above,
    shares,
    split,
    store,
    sum_tiles,
    walk,
)
from eigengame.linalg.products import full_product

PARTS = 2
"""Parts that a float32 is split into."""


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
    arrays = (*wide, rows, jnp.ones((1,), jnp.float32))
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


def overlaps(
    wide: Sequence[jax.Array], lengths: jax.Array, *, interpret: bool = False
) -> jax.Array:
    r"""Return $WW^\top$, shape (K, K), for vectors of about these lengths (K,)."""
    d, k = wide[0].shape[1], sum(map(len, wide))
    tile = TILE // 2
    tiles, each, programs = shares(d, tile, 4)
    scale = _scale_of(lengths)
    shared = called(
        functools.partial(
            _add_overlaps, k=len(wide[0]), parts=len(wide), tile=tile, each=each, tiles=tiles
        ),
        (*wide, jnp.pad(scale, (0, TALL - k)), jnp.ones((1,), jnp.float32)),
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct((programs, TALL, TALL), jnp.float32)] * PARTS,
        out_specs=[pl.BlockSpec((None, TALL, TALL), lambda i: (i, 0, 0))] * PARTS,
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=3),
        interpret=interpret,
        name="overlaps",
    )
    first, second = (jnp.sum(one, axis=0)[:k, :k] for one in shared)
    found = (first + (second + second.T)) / scale[:, None] / scale[None, :]
    rest = jnp.concatenate([part[:, tiles * tile :] for part in wide])
    return found + full_product(rest, rest.T)


def combined(
    coefficients: jax.Array,
    lengths: jax.Array,
    wide: Sequence[jax.Array],
    rows: jax.Array,
    *,
    interpret: bool = False,
) -> tuple[list[jax.Array], jax.Array]:
    r"""Return $PW + QX$ in the parts that W has, and the coefficients $[P, Q]$ as they were applied: rounded."""
    (m, d), k = rows.shape, sum(map(len, wide))
    turn, fresh = coefficients[:, :k], coefficients[:, k:]
    scaled = _in_units(turn, lengths)
    tiles, each, programs = shares(d, TILE, 1)
    width = sum(size for _, size in pieces_of(k))
    arrays = (
        *wide,
        rows,
        split(scaled.turn, PARTS, TALL, width, jnp.float16),
        split(fresh, PARTS, TALL, m),
        jnp.pad(scaled.vectors, (0, width - k)),
        jnp.pad(scaled.products, (0, TALL - k)),
    )
    moved = called(
        functools.partial(_combine, k=len(wide[0]), parts=len(wide), each=each, tiles=tiles),
        arrays,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct(part.shape, jnp.float32) for part in wide],
        out_specs=[pl.no_block_spec] * len(wide),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=3),
        interpret=interpret,
        name="combined",
    )
    applied = jnp.concatenate([scaled.applied(), _sum_of_parts(fresh, jnp.bfloat16)], axis=1)
    done = tiles * TILE
    if done == d:
        return moved, applied
    rest = [*(part[:, done:] for part in wide), rows[:, done:].astype(jnp.float32)]
    ends = jnp.split(full_product(applied, jnp.concatenate(rest)), [len(wide[0])])
    moved = [one.at[:, done:].set(end) for one, end in zip(moved, ends, strict=False)]
    return moved, applied


LARGEST = 2.0**14
"""What numbers are scaled to before they are split into float16, which ends at 2^16 and is whole from 2^-14 on."""


class _Scaled(NamedTuple):
    """Coefficients $P$ in units that float16 holds: P_ij = products_i turn_ij vectors_j, scales powers of two.

    Attributes
    ----------
    turn : array of shape (K, K)
    vectors, products : arrays of shape (K,)
        What vectors are multiplied by before, and their combinations after.
    """

    turn: jax.Array
    vectors: jax.Array
    products: jax.Array

    def applied(self) -> jax.Array:
        """Return P as it is applied."""
        rounded = _sum_of_parts(self.turn, jnp.float16)
        return self.products[:, None] * rounded * self.vectors[None, :]


def _scale_of(lengths: jax.Array) -> jax.Array:
    """Return what vectors are multiplied by before they are split: no number is larger than its vector is long."""
    return LARGEST / power_above(lengths)


def _in_units(turn: jax.Array, lengths: jax.Array) -> _Scaled:
    """Return coefficients over vectors of these lengths (K,) in such units."""
    vectors = _scale_of(lengths)
    sized = turn / vectors[None, :]
    products = power_above(jnp.max(jnp.abs(sized), axis=1)) / LARGEST
    return _Scaled(sized / products[:, None], vectors, products)


def _sum_of_parts(coefficients: jax.Array, dtype: Any) -> jax.Array:
    """Return coefficients as their parts in a shorter dtype make them."""
    return sum(coefficient_parts(coefficients, PARTS, dtype), jnp.zeros_like(coefficients))


def _add_products(*refs: Any, k: int, parts: int, each: int, tiles: int, square: bool) -> None:
    """Add up one program's tiles: (m, m) of the rows where wanted, and (m, size) for each piece of W."""
    wide, (rows, one), outputs = refs[:parts], refs[parts : parts + 2], refs[parts + 2 :]

    def products(columns: Any) -> list[jax.Array]:
        x = triton.load(rows.at[:, columns])
        new = [triton.dot(x, x, trans_b=True)] if square else []
        for piece in pieces_of(k + parts - 1):
            parted = parts_of(load(wide, k, *piece, columns), PARTS)
            new.append(added_up(triton.dot(x, part, trans_b=True) for part in parted))
        return new

    sum_tiles(outputs, one[0], TILE, each, tiles, products)


def _add_overlaps(*refs: Any, k: int, parts: int, tile: int, each: int, tiles: int) -> None:
    """Add up one program's tiles: the first parts of W with each other, and with the second."""
    wide, (vectors, one), outputs = refs[:parts], refs[parts : parts + 2], refs[parts + 2 :]
    scale = triton.load(vectors)

    def products(columns: Any) -> list[jax.Array]:
        scaled = load(wide, k, 0, TALL, columns) * scale[:, None]
        first, second = parts_of(scaled, PARTS, jnp.float16)
        return [triton.dot(first, part, trans_b=True) for part in (first, second)]

    sum_tiles(outputs, one[0], tile, each, tiles, products)


def _combine(*refs: Any, k: int, parts: int, each: int, tiles: int) -> None:
    """Combine one program's tiles: the product of the small coefficients with what lies under them."""
    wide, (rows, turns, fresh, vectors, products) = refs[:parts], refs[parts : parts + 5]
    outputs, pieces = refs[parts + 5 :], pieces_of(k + parts - 1)
    heights = [pl.ds(p * TALL, TALL) for p in range(PARTS)]
    of_rows = [triton.load(fresh.at[height, :]) for height in heights]
    of_wide = [[triton.load(turns.at[height, pl.ds(*of)]) for height in heights] for of in pieces]
    scales = [triton.load(vectors.at[pl.ds(*of)]) for of in pieces]
    units = triton.load(products)

    def combine(columns: Any) -> None:
        x = triton.load(rows.at[:, columns])
        loaded = [load(wide, k, *of, columns) for of in pieces]
        under = [
            parts_of(one * scale[:, None], PARTS, jnp.float16)
            for one, scale in zip(loaded, scales, strict=True)
        ]
        # What is small comes first: sums are cut by as much as they are large.
        turned = added_up(
            triton.dot(turn[p], parted[q])
            for p, q in ((1, 0), (0, 1), (0, 0))
            for turn, parted in zip(of_wide, under, strict=True)
        )
        new = added_up(triton.dot(part, x) for part in reversed(of_rows))
        store(outputs, k, 0, TALL, columns, units[:, None] * turned + new)

    walk(TILE, each, tiles, combine)
