"""Batches of one fixed shape, so that an update is compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame.game.rows import DenseRows, floating


def batches(
    data: Any, size: int, *, passes: int = 1, seed: int | None = None
) -> Iterator[DenseRows]:
    """Yield rows of `data`, `size` at a time.

    The last batch of a pass is filled up with zero rows, which change no $M$.

    Parameters
    ----------
    data : array of shape (n, d)
        A memory-mapped file too: it is read one batch at a time.
    size : int
        Rows for each batch.
    passes : int
        Sweeps over the data.
    seed : int, optional
        Shuffle the rows anew for each pass; without it they come in their own order.
    """
    data = _check.shaped("data", data)
    _check.whole("size", size)
    _check.whole("passes", passes)
    if seed is not None:
        _check.seed("seed", seed)
    return _batches(data, size, passes, seed)


def _batches(
    data: np.ndarray | jax.Array, size: int, passes: int, seed: int | None
) -> Iterator[DenseRows]:
    """Yield the batches: a generator of its own so that the checks above run at the call.

    Values are checked batch by batch: the data may be a file that is larger than memory.
    """
    rng = None if seed is None else np.random.default_rng(seed)
    for _ in range(passes):
        order = None if rng is None else rng.permutation(len(data))
        for begin in range(0, len(data), size):
            places = np.arange(begin, min(begin + size, len(data)))
            if order is None:
                block = data[begin : begin + size]
            else:
                places = order[places]
                block = data[places]
            _check.finite("data", block, places=places)
            values = floating("data", block, places=places)
            yield DenseRows(jnp.pad(values, ((0, size - len(values)), (0, 0))))
