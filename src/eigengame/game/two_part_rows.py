r"""Rows as the sum of two arrays of bfloat16, so that tensor cores multiply them with players.

A float32 is split into its first eight bits and the next eight. So are players and scores; of the four products the
one of both second parts is omitted. The relative error of a product is about $2^{-17}$, and errors of different
rows are independent. That is accurate enough to find players, several times as fast as float32 on a GPU, and far
more accurate than TF32. Nothing that a certificate depends on is computed in this way: probes and moments are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from eigengame.game.rows import DenseRows, SampleRows
from eigengame.linalg.products import LONGEST_CHUNK, full_product, row_product

UNIT = 64
"""Rows of a chunk are a multiple of this: otherwise XLA copies them, padded, for each product."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TwoPartRows(SampleRows):
    r"""Weighted rows $Z$ in two parts.

    Parameters
    ----------
    high, low : arrays of shape (m, d)
        Parts of $Z$ in bfloat16, in chunks of equal length; `low` is None if the first part is exact.
    roots : array of shape (m,)
        Roots of the weights; 0 for rows of padding.
    mean : array of shape (d,), optional
        The mean of the rows if it is already known.
    """

    high: jax.Array
    low: jax.Array | None
    roots: jax.Array
    mean: jax.Array | None = None

    @classmethod
    def of(cls, rows: DenseRows) -> TwoPartRows:
        """Split dense rows, padded with rows of weight 0 to whole chunks."""
        m = rows.values.shape[0]
        chunk = -(-m // -(-m // LONGEST_CHUNK) // UNIT) * UNIT
        missing = -m % chunk
        values = jnp.pad(rows.values, [(0, missing), (0, 0)])
        exact = values.dtype == jnp.bfloat16
        # The barrier keeps XLA from splitting the rows again for each product.
        parts = lax.optimization_barrier((values,) if exact else parts_of(values))
        roots = jnp.pad(rows.constant()[:, 0], (0, missing))
        return cls(parts[0], None if exact else parts[1], roots, rows.mean)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return self.high.shape[1]

    def constant(self) -> jax.Array:
        """Return the scores of a feature that is always 1, shape (m, 1)."""
        return self.roots[:, None]

    def dense(self) -> jax.Array:
        """Return $Z$, shape (m, d)."""
        high = self.high.astype(jnp.float32)
        return high if self.low is None else high + self.low.astype(jnp.float32)

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two arrays of scores, which may have further rows.

        Those with one column are in float32: means are subtracted from scores, and may be far larger than these.
        """
        if left.shape[1] == 1:
            return row_product(left, right)
        m, k, l = self.roots.shape[0], left.shape[1], right.shape[1]
        one = jnp.concatenate(parts_of(left[:m]), axis=1)
        other = one if left is right else jnp.concatenate(parts_of(right[:m]), axis=1)
        both = _over_chunks(one, other)
        found = both[:k, :l] + (both[:k, l:] + both[k:, :l])
        return found if len(left) == m else found + full_product(left[m:].T, right[m:])

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Z V^\top$."""
        k, parts = len(players), parts_of(players)
        both = _product(self.high, jnp.concatenate(parts).T)
        found = both[:, :k] + both[:, k:]
        return found if self.low is None else found + _product(self.low, parts[0].T)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$, as a sum of chunks of rows."""
        k, parts = scores.shape[1], parts_of(scores)
        both = _over_chunks(jnp.concatenate(parts, axis=1), self.high)
        found = both[:k] + both[k:]
        return found if self.low is None else found + _over_chunks(parts[0], self.low)


def parts_of(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the two parts in bfloat16 of an array: its first eight bits, and the next eight."""
    # reduce_precision, since XLA may omit a conversion to bfloat16 and back.
    wide = values.astype(jnp.float32)
    high = lax.reduce_precision(wide, exponent_bits=8, mantissa_bits=7)
    return high.astype(jnp.bfloat16), (wide - high).astype(jnp.bfloat16)


def _product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return the product of two arrays of bfloat16 in float32."""
    return jnp.matmul(left, right, preferred_element_type=jnp.float32)


def _over_chunks(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return `left.T @ right` in float32, as a sum of chunks of rows.

    Tensor cores truncate sums instead of rounding them, which adds up in long ones.
    """
    m = left.shape[0]
    count = -(-m // LONGEST_CHUNK)
    assert m % count == 0
    one, other = (part.reshape(count, m // count, -1) for part in (left, right))
    chunks = jnp.einsum("cmk,cml->ckl", one, other, preferred_element_type=jnp.float32)
    return jnp.sum(chunks, axis=0)
