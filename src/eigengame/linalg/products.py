"""Products in the full precision of their dtype, also over millions of features."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from eigengame.linalg.autotune import jit_without_autotune


def full_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return `left @ right` in the full precision of its dtype.

    GPUs would otherwise multiply float32 in TF32, with three digits: players could then not be told
    apart below a milliradian, nor a certificate be believed. Thin products wait for memory anyway.
    """
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


LONG = 2**18
"""Features from which on sums are made in chunks: on a GPU one of millions in float32 is off by 1e-4 of itself."""

CHUNKS = 2**10


def long_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return `left @ right.T`, summed in chunks and these together."""
    d = left.shape[1]
    if d < LONG:
        return full_product(left, right.T)
    # As many chunks as divide the width, which may be shared between devices; where too few do, some features are
    # left over.
    count = math.gcd(d, CHUNKS)
    count = count if count >= 64 else CHUNKS
    whole = d // count * count
    one, other = (part[:, :whole].reshape(len(part), count, -1) for part in (left, right))
    chunks = jnp.einsum("kcw,lcw->ckl", one, other, precision=jax.lax.Precision.HIGHEST)
    return jnp.sum(chunks, axis=0) + full_product(left[:, whole:], right[:, whole:].T)


measured_product = jit_without_autotune(long_product)
"""The same, compiled: for what is measured between passes."""
