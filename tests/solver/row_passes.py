"""Passes over rows at hand, such as a matrix: each pass takes every one of them once."""

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sharding.placement import ONE_DEVICE


class RowPasses:
    """Stands in for `eigengame.solver.passes.passes.Passes` in tests of products and refinement."""

    stopped = False
    raw = False
    sparse_on_host = False
    placement = ONE_DEVICE

    def __init__(self, *rows):
        self.rows = rows

    @property
    def size(self):
        """Rows of the longest batch, or features of a matrix."""
        return max(length(rows) for rows in self.rows)

    def in_float64(self, mean):
        with jax.enable_x64(True):
            return RowPasses(*(jax.tree.map(widened, rows) for rows in self.rows))

    def fold(self, step, start, *, task, report=None):
        carry = start
        for rows in self.rows:
            carry = step(carry, rows, 1)
        return carry


def length(rows):
    with jax.enable_x64(True):
        player = jax.ShapeDtypeStruct((1, rows.width), np.float64)
        return int(jax.eval_shape(rows.scores, player).shape[0])


def widened(leaf):
    return leaf.astype(np.float64) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf
