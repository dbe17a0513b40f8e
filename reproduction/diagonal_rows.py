"""Rows of a diagonal matrix: products with them are elementwise, which saves most of the time of small problems."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.products import full_product


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DiagonalRows:
    r"""Rows $Z = \Lambda^{1/2}$ of a diagonal matrix $M = Z^\top Z = \Lambda$; a `Rows` of `eigengame.game`.

    Parameters
    ----------
    roots : array of shape (d,)
        Square roots of the eigenvalues.
    """

    roots: jax.Array

    @classmethod
    def of(cls, values: np.ndarray) -> DiagonalRows:
        """Return the rows of eigenvalues (d,), in float32."""
        return cls(jnp.asarray(np.sqrt(values), jnp.float32))

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return self.roots.shape[-1]

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Z V^\top$, shape (d, k), for players of shape (k, d)."""
        return self.roots[:, None] * players.T

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of scores (d, k) and (d, l), shape (k, l)."""
        return full_product(left.T, right)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$, shape (k, d), for scores of shape (d, k)."""
        return scores.T * self.roots[None, :]
