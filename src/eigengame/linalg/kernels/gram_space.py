r"""Kernels for inner products and combinations over width $d$ (see `eigengame.linalg.wide`), for one GPU.

Each program loops over tiles of columns. Rows are bfloat16. Players are float32 and are split into two parts,
$v = v_0 + v_1$, so that all products are computed by tensor cores and are exact before they are summed. For
products with rows the parts are bfloat16, with a remainder below $2^{-17}|v|$. For combinations of players they are
float16, with a remainder below $2^{-23}|v|$, after scaling into the range of float16. Measurements led to these
choices:

* Tensor cores truncate sums instead of rounding them, so sums in them are short (see `tiles.sum_tiles`).
* Coefficients are read before the loop: inside, every stage of the pipeline would hold a copy of them.
* Tensor cores compute 64 rows at once in half the time of 48 rows in pieces.
* The number of programs is that of the processors, so that all finish at the same time.
"""

from __future__ import annotations

import functools
import itertools
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
"""Number of parts of a float32."""


def inner_products(
    wide: Sequence[jax.Array],
    rows: jax.Array,
    *,
    draws: jax.Array | None = None,
    interpret: bool = False,
) -> tuple[jax.Array, ...]:
    r"""Return $XX^\top$ (m, m) and $XW^\top$ (m, K); W is players and at most one further vector.

    With probes `draws` (r, d), return $XG^\top$ (m, r) as well.
    """
    groups = [wide] if draws is None else [wide, [draws]]
    square, *across = _products(groups, rows, square=True, interpret=interpret)
    done = rows.shape[1] // TILE * TILE
    if done == rows.shape[1]:
        return square, *across
    rest = rows[:, done:].astype(jnp.float32)
    return square + full_product(rest, rest.T), *across


def scores(players: jax.Array, rows: jax.Array, *, interpret: bool = False) -> jax.Array:
    r"""Return $XV^\top$, shape (m, K)."""
    (found,) = _products([[players]], rows, square=False, interpret=interpret)
    return found


def _products(
    groups: Sequence[Sequence[jax.Array]], rows: jax.Array, *, square: bool, interpret: bool
) -> list[jax.Array]:
    r"""Return $XW^\top$ for each group of vectors, preceded with `square` by $XX^\top$ over all whole tiles."""
    (m, d), heights = rows.shape, [sum(map(len, wide)) for wide in groups]
    tiles, each, programs = shares(d, TILE, 1)
    pieces = [pieces_of(k) for k in heights]
    widths = [*((m,) if square else ()), *(size for own in pieces for _, size in own)]
    arrays = (*itertools.chain(*groups), rows, jnp.ones((1,), jnp.float32))
    shared = called(
        functools.partial(
            _add_products,
            groups=[(len(wide[0]), len(wide)) for wide in groups],
            each=each,
            tiles=tiles,
            square=square,
        ),
        arrays,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct((programs, m, width), jnp.float32) for width in widths],
        out_specs=[pl.BlockSpec((None, m, width), lambda i: (i, 0, 0)) for width in widths],
        compiler_params=triton.CompilerParams(
            num_warps=8, num_stages=4 if sum(heights) <= 32 else 3
        ),
        interpret=interpret,
        name="inner_products" if square else "scores",
    )
    sums = [jnp.sum(one, axis=0) for one in shared]
    found, rest = (sums[:1], iter(sums[1:])) if square else ([], iter(sums))
    done = tiles * TILE
    for wide, k, own in zip(groups, heights, pieces, strict=True):
        across = jnp.concatenate(list(itertools.islice(rest, len(own))), axis=1)[:, :k]
        if done < d:
            left = jnp.concatenate([part[:, done:] for part in wide])
            across = across + full_product(rows[:, done:].astype(jnp.float32), left.T)
        found.append(across)
    return found


def overlaps(
    wide: Sequence[jax.Array], lengths: jax.Array, *, interpret: bool = False
) -> jax.Array:
    r"""Return $WW^\top$, shape (K, K), for vectors of approximately these lengths (K,)."""
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
    r"""Return $PW + QX$ in the same parts as W, and the coefficients $[P, Q]$ as rounded."""
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
"""Scale of numbers before they are split into float16, whose range is 2^-14 to 2^16 at full precision."""


class _Scaled(NamedTuple):
    """Coefficients scaled into the range of float16: P_ij = products_i turn_ij vectors_j.

    Attributes
    ----------
    turn : array of shape (K, K)
    vectors, products : arrays of shape (K,)
        Powers of two that multiply the vectors before, and their combinations after.
    """

    turn: jax.Array
    vectors: jax.Array
    products: jax.Array

    def applied(self) -> jax.Array:
        """Return P as rounded."""
        rounded = _sum_of_parts(self.turn, jnp.float16)
        return self.products[:, None] * rounded * self.vectors[None, :]


def _scale_of(lengths: jax.Array) -> jax.Array:
    """Return the factors of vectors before they are split; no entry is larger than the length of its vector."""
    return LARGEST / power_above(lengths)


def _in_units(turn: jax.Array, lengths: jax.Array) -> _Scaled:
    """Return scaled coefficients of vectors of these lengths (K,)."""
    vectors = _scale_of(lengths)
    sized = turn / vectors[None, :]
    products = power_above(jnp.max(jnp.abs(sized), axis=1)) / LARGEST
    return _Scaled(sized / products[:, None], vectors, products)


def _sum_of_parts(coefficients: jax.Array, dtype: Any) -> jax.Array:
    """Return the sum of the parts of coefficients in a shorter dtype."""
    return sum(coefficient_parts(coefficients, PARTS, dtype), jnp.zeros_like(coefficients))


def _add_products(
    *refs: Any, groups: Sequence[tuple[int, int]], each: int, tiles: int, square: bool
) -> None:
    """Sum one program's tiles: with `square` (m, m) of the rows, and (m, size) for each piece of the groups.

    `groups` are the length of the first part and the number of parts of each.
    """
    count = sum(parts for _, parts in groups)
    arrays, (rows, one), outputs = iter(refs[:count]), refs[count : count + 2], refs[count + 2 :]
    own = [(list(itertools.islice(arrays, parts)), k) for k, parts in groups]

    def products(columns: Any) -> list[jax.Array]:
        x = triton.load(rows.at[:, columns])
        new = [triton.dot(x, x, trans_b=True)] if square else []
        for wide, k in own:
            for piece in pieces_of(k + len(wide) - 1):
                parted = parts_of(load(wide, k, *piece, columns), PARTS)
                new.append(added_up(triton.dot(x, part, trans_b=True) for part in parted))
        return new

    sum_tiles(outputs, one[0], TILE, each, tiles, products)


def _add_overlaps(*refs: Any, k: int, parts: int, tile: int, each: int, tiles: int) -> None:
    """Sum one program's tiles: products of the first parts of W with each other and with the second parts."""
    wide, (vectors, one), outputs = refs[:parts], refs[parts : parts + 2], refs[parts + 2 :]
    scale = triton.load(vectors)

    def products(columns: Any) -> list[jax.Array]:
        scaled = load(wide, k, 0, TALL, columns) * scale[:, None]
        first, second = parts_of(scaled, PARTS, jnp.float16)
        return [triton.dot(first, part, trans_b=True) for part in (first, second)]

    sum_tiles(outputs, one[0], tile, each, tiles, products)


def _combine(*refs: Any, k: int, parts: int, each: int, tiles: int) -> None:
    """Combine one program's tiles: the product of the coefficients with vectors and rows."""
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
        # Small terms come first: truncation errors are proportional to the sum so far.
        turned = added_up(
            triton.dot(turn[p], parted[q])
            for p, q in ((1, 0), (0, 1), (0, 0))
            for turn, parted in zip(of_wide, under, strict=True)
        )
        new = added_up(triton.dot(part, x) for part in reversed(of_rows))
        store(outputs, k, 0, TALL, columns, units[:, None] * turned + new)

    walk(TILE, each, tiles, combine)
