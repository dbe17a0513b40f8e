"""Products of rows in host memory with a block of directions, by a compiled program on all cores.

XLA uses the widest vectors of a processor, which the BLAS of NumPy does not on all of them: thin products of large
arrays then take two thirds of the time. It takes a tenth of a second to compile.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame._system.aligned import ALIGNMENT, MOST_BYTES, is_aligned, is_mapped
from eigengame._system.reused_memory import ReusedMemory
from eigengame.linalg.products import full_product
from eigengame.linalg.quick_jit import quick_jit

DIRECTIONS = 8
"""Numbers of directions that fill the vectors of a processor are multiples of it."""


class BlockSums(NamedTuple):
    r"""Sums over rows $Z$ for a block of directions $W$, with scores $Y = ZW^\top$.

    Attributes
    ----------
    images : array of shape (b, d)
        $Y^\top Z$ in float64, by products in float32.
    along : array of shape (b,)
        Sums of the scores, weights counted.
    parts : int
        Number of chunks of rows whose sums were added.
    """

    images: np.ndarray
    along: np.ndarray
    parts: int


def chunk_length(values: np.ndarray, most: int) -> int:
    """Return the number of rows of even chunks, at most `most`; 0 if they would be large copies.

    A chunk is copied if its address is not aligned. Addresses of arrays differ from run to run, and results must
    not depend on them. So of long rows only those in memory maps, which begin at a page, are divided into chunks.
    """
    m, d = values.shape
    rows = -(-m // -(-m // most))
    if rows * d * values.itemsize <= MOST_BYTES:
        return rows
    aligned = is_aligned(values) and d * values.itemsize % ALIGNMENT == 0
    return rows if aligned and is_mapped(values) else 0


def compiled_sums(
    values: np.ndarray,
    block: np.ndarray,
    level: np.ndarray | None,
    rows: int,
    memory: ReusedMemory,
) -> BlockSums:
    """Return the sums over all rows, each of weight 1.

    Parameters
    ----------
    values : array of shape (m, d)
        In float32.
    block : array of shape (b, d)
        In float32.
    level : array of shape (b,), optional
        Subtracted from the scores.
    rows : int
        Rows of a chunk.
    memory : ReusedMemory
        For the images: new memory takes longer to fill than they take to add.
    """
    (m, d), b = values.shape, len(block)
    missing = -b % DIRECTIONS
    about = np.zeros(b + missing, np.float32)
    about[:b] = 0 if level is None else level
    with jax.enable_x64(True):
        padded = jax.device_put(np.pad(block, ((0, missing), (0, 0))) if missing else block)
        images, along = jnp.zeros((b + missing, d)), jnp.zeros(b + missing)
        for begin in range(0, m, rows):
            # The last chunk has as many rows as the others. Those that were added before count nothing.
            first = min(begin, m - rows)
            counts = (np.arange(first, first + rows) >= begin).astype(np.float32)
            before, held = along, values[first : first + rows]
            images, along = _add_chunk(images, along, held, counts, padded, about)
            before.block_until_ready()  # chunks may be copies: two of them at a time
    # Copies, since arrays of JAX cannot be changed.
    own = memory.empty((b, d), np.float64)
    np.copyto(own, np.asarray(images)[:b])
    return BlockSums(own, np.array(np.asarray(along)[:b]), -(-m // rows))


@partial(quick_jit, donate_argnums=0)
def _add_chunk(
    images: jax.Array,
    along: jax.Array,
    rows: jax.Array,
    counts: jax.Array,
    block: jax.Array,
    level: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    scores = (full_product(rows, block.T) - level[None, :]) * counts[:, None]
    wide = images.dtype
    images = images + full_product(scores.T, rows).astype(wide)
    return images, along + jnp.sum(scores.astype(wide), axis=0)
