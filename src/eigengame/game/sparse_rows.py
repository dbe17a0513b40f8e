"""Sparse rows: products over the stored entries."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from eigengame.game.rows import SampleRows
from eigengame.linalg.products import full_product


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseRows(SampleRows):
    """Rows given by their non-zero entries in coordinate format, padded to a fixed number of entries.

    Parameters
    ----------
    entries : array of shape (nnz,)
        Values; 0 for padding.
    row, column : int arrays of shape (nnz,)
        Position of each value, sorted by row.
    weights : array of shape (m,)
        Weight of each row; 0 for a row of padding.
    features : int
        The number of features $d$.
    """

    entries: jax.Array
    row: jax.Array
    column: jax.Array
    weights: jax.Array
    features: int = field(metadata={"static": True})

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return self.features

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Z V^\top$, with the rows $Z$ multiplied by the square roots of their weights."""
        parts = self.entries[:, None] * players.T[self.column]
        m = self.weights.shape[0]
        sums = jax.ops.segment_sum(parts, self.row, m, indices_are_sorted=True)
        return jnp.sqrt(self.weights)[:, None] * sums

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two arrays of scores."""
        return full_product(left.T, right)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$."""
        weighted = jnp.sqrt(self.weights)[:, None] * scores
        parts = self.entries[:, None] * weighted[self.row]
        return jax.ops.segment_sum(parts, self.column, self.features).T

    def dense(self) -> jax.Array:
        """Return $Z$ as a dense array, shape (m, d)."""
        empty = jnp.zeros((self.weights.shape[0], self.features), self.entries.dtype)
        return jnp.sqrt(self.weights)[:, None] * empty.at[self.row, self.column].add(self.entries)

    def constant(self) -> jax.Array:
        """Return the scores of a feature that is always 1, shape (m, 1)."""
        return jnp.sqrt(self.weights)[:, None]
