"""Scores and directions of whole passes, by kernels where these apply."""

from __future__ import annotations

import jax

from eigengame.game.rows import DenseRows, Rows
from eigengame.linalg.products import long_product
from eigengame.linalg.wide import kernels_fit


def scores_of(rows: Rows, block: jax.Array) -> jax.Array:
    r"""Return $Y = ZW^\top$, shape (m, K), for a block (K, d)."""
    if type(rows) is not DenseRows:
        return rows.scores(block)
    if kernels_fit([block], rows.values):
        from eigengame.linalg.kernels import gram_space as kernels

        return kernels.scores(block, rows.values)
    if jax.default_backend() == "gpu":
        return long_product(rows.values.astype(block.dtype), block)
    return rows.scores(block)


def with_directions(total: jax.Array, scores: jax.Array, rows: Rows) -> jax.Array:
    r"""Return $T + Y^\top Z$, shape (K, d)."""
    if type(rows) is DenseRows and kernels_fit([total], rows.values):
        from eigengame.linalg.kernels import passes as kernels

        return kernels.added(total, scores, rows.values)
    return total + rows.directions(scores)
