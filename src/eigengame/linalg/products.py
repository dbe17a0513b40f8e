"""Matrix products in the full precision of their dtype, also over millions of features."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from eigengame.linalg.library import host_product
from eigengame.linalg.quick_jit import quick_jit


def full_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return `left @ right` in the full precision of its dtype.

    By default GPUs multiply float32 in TF32, which has three digits: too few to separate players that are less than
    a milliradian apart, or for a certificate. Thin products are bound by memory, so full precision costs little.
    Products of NumPy arrays stay on the host.
    """
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return host_product(left, right)
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


LONG = 2**18
"""Number of features from which sums are computed in chunks: on a GPU, a float32 sum of millions has a relative
error of 1e-4."""

CHUNKS = 2**10
"""Number of chunks."""


def long_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return `left @ right.T` as a sum of chunks of features."""
    d = left.shape[1]
    if d < LONG or isinstance(left, np.ndarray):
        return full_product(left, right.T)
    # A number of chunks that divides the width, since devices may share it. If there is none of a good size, some
    # features are left over.
    count = math.gcd(d, CHUNKS)
    count = count if count >= 64 else CHUNKS
    whole = d // count * count
    one, other = (part[:, :whole].reshape(len(part), count, -1) for part in (left, right))
    chunks = jnp.einsum("kcw,lcw->ckl", one, other, precision=lax.Precision.HIGHEST)
    return jnp.sum(chunks, axis=0) + full_product(left[:, whole:], right[:, whole:].T)


def row_squares(values: jax.Array) -> jax.Array:
    """Return the sum of squares of each row (m,), in at least float32.

    Few wide rows are summed in chunks of features: a GPU uses few of its processors for a few long sums.
    """
    m, d = values.shape
    wide = values.astype(jnp.promote_types(values.dtype, jnp.float32))
    count = math.gcd(d, CHUNKS)
    if d < LONG or count < 64:
        return jnp.sum(jnp.square(wide), axis=1)
    chunks = jnp.sum(jnp.square(wide.reshape(m, count, d // count)), axis=2)
    return jnp.sum(chunks, axis=1)


LONG_BATCH = 2**11
"""Number of rows from which sums over rows are computed in chunks on a GPU."""

LONGEST_CHUNK, MOST_CHUNKS = 2**12, 2**6
"""Largest number of rows of a chunk, and largest number of chunks where more are not needed for it."""

TILES = 2**9
"""Number of tiles of 64 by 64 numbers, in all chunks together, that occupies the processors of a GPU."""


def longest_row_sum(m: int) -> int:
    """Return the largest number of additions in a row of a sum over m rows by `row_product`."""
    if jax.default_backend() != "gpu" or m < LONG_BATCH:
        return m
    return min(m, LONGEST_CHUNK + 4 * max(MOST_CHUNKS, -(-m // LONGEST_CHUNK)))


def row_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return `left.T @ right`, shape (k, l), for arrays of m rows; on a GPU as a sum of chunks of rows.

    The result is small and the sum is long. A library that is not tuned for this shape uses few processors of the
    GPU for it, and the error of one long float32 sum is ten times that of a sum of chunks.
    """
    m, tiles = left.shape[0], -(-left.shape[1] // 64) * -(-right.shape[1] // 64)
    if jax.default_backend() != "gpu" or m < LONG_BATCH or (tiles >= TILES and m <= LONGEST_CHUNK):
        return full_product(left.T, right)
    count = _chunk_count(m, min(MOST_CHUNKS, 1 << (-(-TILES // tiles) - 1).bit_length()))
    # Large batches are multiples of 64 rows; scores may have one more row.
    whole = m // count * count
    one, other = (part[:whole].reshape(count, whole // count, -1) for part in (left, right))
    chunks = jnp.einsum("cmk,cml->ckl", one, other, precision=lax.Precision.HIGHEST)
    total = jnp.sum(chunks, axis=0)
    return total if whole == m else total + full_product(left[whole:].T, right[whole:])


def _chunk_count(m: int, least: int) -> int:
    """Return the number of chunks of m rows: one that divides m if there is any that is not much larger.

    Rows that are left over are multiplied separately, and the others are copied for it.
    """
    least = max(least, -(-m // LONGEST_CHUNK))
    return next((count for count in range(least, 4 * least) if m % count == 0), least)


measured_product = quick_jit(long_product)
"""`long_product`, compiled, for measurements between passes."""
