r"""Kernels for passes over wide rows on one GPU: directions, and sums over each column.

With `eigengame.linalg.kernels.gram_space.scores` they replace the plain products of `DenseRows`, which would first
convert the rows to float32 in memory.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from eigengame.linalg.kernels.tiles import (
    TALL,
    TILE,
    added_up,
    called,
    load,
    shares,
    split,
    store,
    walk,
)
from eigengame.linalg.products import full_product

PARTS = 3
"""Number of parts of scores: three hold all bits of a float32."""

COLUMNS = 2048
"""Columns of a tile for column sums."""

TOGETHER = 4
"""Rows that are loaded together for column sums."""


def added(
    total: jax.Array,
    scores: jax.Array,
    rows: jax.Array,
    vector: jax.Array | None = None,
    factors: jax.Array | None = None,
    *,
    interpret: bool = False,
) -> jax.Array:
    r"""Return $T + Y^\top X$, shape (K, d), for a total (K, d) and scores (m, K).

    With a `vector` w (d,) and `factors` b (K,), return $T + Y^\top X + bw^\top$.
    """
    (m, d), k = rows.shape, len(total)
    tile = TILE // 2
    tiles, each, programs = shares(d, tile, 2)
    arrays = [total, rows, split(scores.T, PARTS, TALL, m), jnp.ones((1,), jnp.float32)]
    if vector is not None and factors is not None:
        arrays += [vector, jnp.pad(factors, (0, TALL - k))]
    (made,) = called(
        functools.partial(_add, k=k, each=each, tiles=tiles, tile=tile),
        arrays,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct(total.shape, jnp.float32)],
        out_specs=[pl.no_block_spec],
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=3),
        interpret=interpret,
        name="added",
    )
    done = tiles * tile
    if done == d:
        return made
    rest = full_product(scores.T, rows[:, done:].astype(jnp.float32))
    if vector is not None and factors is not None:
        rest = rest + factors[:, None] * vector[None, done:]
    return made.at[:, done:].set(total[:, done:] + rest)


def _add(
    total: Any,
    rows: Any,
    scores: Any,
    one: Any,
    *others: Any,
    k: int,
    each: int,
    tiles: int,
    tile: int,
) -> None:
    """Add the products of scores and rows in one program's tiles."""
    *further, made = others
    unknown_one, factors = one[0], triton.load(further[1]) if further else None
    of_rows = [triton.load(scores.at[pl.ds(p * TALL, TALL), :]) for p in range(PARTS)]

    def add(columns: Any) -> None:
        x = triton.load(rows.at[:, columns])
        more = added_up(triton.dot(part, x) for part in of_rows)
        # By a float32 addition: see `sum_tiles`.
        so_far = load([total], k, 0, TALL, columns)
        if factors is not None:
            so_far = so_far + factors[:, None] * triton.load(further[0].at[columns])[None, :]
        store([made], k, 0, TALL, columns, so_far + unknown_one * more)

    walk(tile, each, tiles, add)


def column_sums(
    roots: jax.Array, rows: jax.Array, *, interpret: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Return sums of each column, with rows multiplied by `roots` (m,), and sums of squares, both (d,)."""
    m, d = rows.shape
    tiles, each, programs = shares(d, COLUMNS, 4)
    sums, squares = called(
        functools.partial(_sum, m=m, each=each, tiles=tiles),
        (roots, rows),
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct((d,), jnp.float32)] * 2,
        out_specs=[pl.no_block_spec] * 2,
        compiler_params=triton.CompilerParams(num_warps=8, num_stages=2),
        interpret=interpret,
        name="column_sums",
    )
    done = tiles * COLUMNS
    if done == d:
        return sums, squares
    rest = rows[:, done:].astype(jnp.float32)
    sums = sums.at[done:].set(full_product(roots, rest))
    return sums, squares.at[done:].set(jnp.sum(jnp.square(rest), axis=0))


def _sum(roots: Any, rows: Any, sums: Any, squares: Any, *, m: int, each: int, tiles: int) -> None:
    """Sum the columns of one program's tiles, some rows at a time."""

    def add(columns: Any) -> None:
        total = jnp.zeros((TOGETHER, COLUMNS), jnp.float32)
        total_squares = total
        for begin in range(0, m, TOGETHER):
            some = pl.ds(begin, TOGETHER)
            x = triton.load(rows.at[some, columns]).astype(jnp.float32)
            total = total + triton.load(roots.at[some])[:, None] * x
            total_squares = total_squares + x * x
        triton.store(sums.at[columns], jnp.sum(total, axis=0))
        triton.store(squares.at[columns], jnp.sum(total_squares, axis=0))

    walk(COLUMNS, each, tiles, add)
