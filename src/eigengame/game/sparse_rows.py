"""Sparse rows: the same two products over the entries that are there."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from eigengame.linalg.products import full_product


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseRows:
    """Rows given by their non-zero entries, in a fixed number of places.

    Parameters
    ----------
    entries : array of shape (nnz,)
        Values; places that are not needed hold 0.
    row, column : int arrays of shape (nnz,)
        Where each value stands; rows ascend.
    weights : array of shape (m,)
        How often each row counts; 0 makes a row of padding.
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
        r"""Return $Z V^\top$, Z being the rows times the roots of their weights."""
        parts = self.entries[:, None] * players.T[self.column]
        m = self.weights.shape[0]
        sums = jax.ops.segment_sum(parts, self.row, m, indices_are_sorted=True)
        return jnp.sqrt(self.weights)[:, None] * sums

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two sets of scores."""
        return full_product(left.T, right)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$."""
        weighted = jnp.sqrt(self.weights)[:, None] * scores
        parts = self.entries[:, None] * weighted[self.row]
        return jax.ops.segment_sum(parts, self.column, self.features).T

    def dense(self) -> jax.Array:
        """Return $Z$ itself, shape (m, d), zeros and all."""
        empty = jnp.zeros((self.weights.shape[0], self.features), self.entries.dtype)
        return jnp.sqrt(self.weights)[:, None] * empty.at[self.row, self.column].add(self.entries)

    def constant(self) -> jax.Array:
        """Return the scores of a feature that is always 1, shape (m, 1)."""
        return jnp.sqrt(self.weights)[:, None]
