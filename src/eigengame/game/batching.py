"""Batches of equal shape, so that an update is compiled once."""

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
    """Yield the rows of `data` in batches of `size`.

    The last batch of a pass is padded with zero rows, which do not change $M$.

    Parameters
    ----------
    data : array of shape (n, d)
        May be a memory-mapped file, which is read one batch at a time.
    size : int
        Rows per batch.
    passes : int
        Passes over the data.
    seed : int, optional
        Seed of a new random order of the rows in each pass. By default their order is kept.
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
    """Yield the batches; a separate generator, so that `batches` checks its arguments when called.

    Values are checked in each batch, since the data may be a file larger than memory.
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
