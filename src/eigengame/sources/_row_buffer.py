"""Rows of layers that are collected until a block is full, for outputs of a JAX function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sources._layers import Layer
from eigengame.sources._positions import Chosen


class LayerRows(NamedTuple):
    """Rows of one layer for one batch.

    Attributes
    ----------
    values : array of shape (c, d), or more rows, of which the first c count
    chosen : Chosen
        Where they come from; c is its number of rows.
    dtype : dtype
        Dtype in which the layer computed them.
    """

    values: Any
    chosen: Chosen
    dtype: Any


class FullRows(NamedTuple):
    """A block of a buffer.

    Attributes
    ----------
    values : JAX array of shape (layers, size, d) or (size, d)
        Rows beyond `rows` are zero.
    rows : int
    weights : array of shape (layers, size) or (size,), or None
        0 for rows that are not finite; None if all rows count.
    """

    values: Any
    rows: int
    weights: np.ndarray | None


class JaxRowBuffer:
    """Rows of layers that are collected until a block is full.

    Rows arrive padded to a few lengths, and are written over the padding of the rows before them. So each program
    is compiled once for each length, not for each number of rows.

    Parameters
    ----------
    layers : list of Layer
    size : int
        Rows of a block.
    dtype : dtype
    stacked : bool
        Whether a block has shape (layers, size, d); else layers are side by side.
    skip : bool
        Whether rows that are not finite have weight 0.

    Attributes
    ----------
    filled : int
        Rows of the block that is being filled.
    """

    def __init__(
        self, layers: list[Layer], size: int, dtype: Any, stacked: bool, skip: bool
    ) -> None:
        self._size, self._stacked, self._skip, self.filled = size, stacked, skip, 0
        width = sum(layer.end - layer.begin for layer in layers)
        self._shape = (len(layers), width // len(layers)) if stacked else (1, width)
        self._buffer = jnp.zeros((self._shape[0], size, self._shape[1]), dtype)

    def append(self, rows: list[LayerRows]) -> Iterator[FullRows]:
        """Add the rows of each layer, and yield the blocks that they complete."""
        count, parts = rows[0].chosen.rows, [one.values for one in rows]
        stacked = jnp.stack(parts) if self._stacked else jnp.concatenate(parts, axis=1)[None]
        room = self._size + stacked.shape[1]
        if self._buffer.shape[1] < room:
            self._buffer = _enlarged(self._buffer, room)
        self._buffer = _written(self._buffer, stacked, self.filled)
        self.filled += count
        while self.filled >= self._size:
            yield self._emit(self._size)
            self._buffer = _shifted(self._buffer, self._size)

    def rest(self) -> Iterator[FullRows]:
        """Yield the last block if there are rows left. The rows after these are zero."""
        if self.filled:
            yield self._emit(self.filled)

    def _emit(self, count: int) -> FullRows:
        values = _block(self._buffer, self._size, count)
        self.filled -= count
        weights = None
        if self._skip:
            values, finite = _finite_rows(values)
            weights = np.asarray(finite, float)
        if not self._stacked:
            values, weights = values[0], None if weights is None else weights[0]
        return FullRows(values, count, weights)


@partial(jax.jit, static_argnums=1)
def _enlarged(buffer: jax.Array, room: int) -> jax.Array:
    """Return a buffer with space for more rows."""
    return jnp.pad(buffer, ((0, 0), (0, room - buffer.shape[1]), (0, 0)))


@jax.jit
def _written(buffer: jax.Array, rows: jax.Array, begin: int) -> jax.Array:
    """Return the buffer with rows written from row `begin` on."""
    return jax.lax.dynamic_update_slice_in_dim(buffer, rows.astype(buffer.dtype), begin, 1)


@partial(jax.jit, static_argnums=1)
def _shifted(buffer: jax.Array, count: int) -> jax.Array:
    """Return the buffer without its first rows."""
    return jnp.roll(buffer, -count, axis=1)


@partial(jax.jit, static_argnums=1)
def _block(buffer: jax.Array, size: int, count: int) -> jax.Array:
    """Return the first `size` rows, with zeros from row `count` on."""
    return jnp.where(jnp.arange(size)[None, :, None] < count, buffer[:, :size], 0)


@jax.jit
def _finite_rows(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return rows with zeros where one of their numbers is not finite, and which rows are."""
    finite = jnp.isfinite(values).all(axis=-1)
    return jnp.where(finite[..., None], values, 0), finite
