"""Batches of one fixed shape, so that an update is compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame.game.rows import DenseRows


def batches(
    data: Any, size: int, *, passes: int = 1, seed: int | None = None
) -> Iterator[DenseRows]:
    """Yield rows of `data`, `size` at a time.

    The last batch of a pass is filled up with zero rows, which change no $M$.

    Parameters
    ----------
    data : array of shape (n, d)
    size : int
        Rows for each batch.
    passes : int
        Sweeps over the data.
    seed : int, optional
        Shuffle the rows anew for each pass; without it they come in their own order.
    """
    _check.matrix("data", data)
    _check.whole("size", size)
    _check.whole("passes", passes)
    return _batches(np.asarray(data), size, passes, seed)


def _batches(data: np.ndarray, size: int, passes: int, seed: int | None) -> Iterator[DenseRows]:
    """Yield the batches: a generator of its own so that the checks above run at the call."""
    rng = None if seed is None else np.random.default_rng(seed)
    for _ in range(passes):
        order = None if rng is None else rng.permutation(len(data))
        for begin in range(0, len(data), size):
            window = slice(begin, begin + size)
            block = data[window] if order is None else data[order[window]]
            yield DenseRows(jnp.asarray(pad(block, size)))


def pad(block: np.ndarray, size: int) -> np.ndarray:
    """Return the block with zero rows added up to `size` rows."""
    short = size - len(block)
    return block if short <= 0 else np.pad(block, ((0, short), (0, 0)))
