"""Rows that are already on the device, such as the activations of a network. They never visit the host."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.rows import DenseRows
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.placement import Placement
from eigengame.solver.rows.frame import Frame
from eigengame.sources import Source


def rows_on_device(
    values: jax.Array,
    weights: np.ndarray | None,
    weighted: bool,
    dtype: Any,
    placement: Placement,
    frame: Frame = Frame(),  # noqa: B008 - immutable
) -> DenseRows:
    """Return rows of the game, with values in their own precision if possible.

    Parameters
    ----------
    values : array of shape (m, d)
        Rows of weight 0 are already zero.
    weights : array of shape (size,) or None
        Weight of each row; 0 beyond row m. None if all rows of a full batch have weight 1.
    weighted : bool
        Whether some weights are neither 0 nor 1, so that rows must be multiplied.
    dtype : dtype
        Precision of the updates. Products convert rows in half precision; for float64 they are converted here.
    placement : Placement
    frame : Frame
        Origin and unit of the rows.
    """
    if placement.processes > 1:
        raise ValueError(
            "rows that a network computes cannot be shared by several processes: fit a model on a part of the data "
            "in each process, and merge the models."
        )
    size = len(values) if weights is None else len(weights)
    full = weights is None or (not weighted and bool((weights == 1).all()))
    roots = None if weights is None else np.sqrt(weights)
    shape = (placement.height(size), placement.width(values.shape[1]))
    wide = np.dtype(dtype) == np.float64 != values.dtype
    if wide or weighted or values.shape != shape or not frame.plain:
        given = None if frame.plain else (_origin(frame, values.shape[1], dtype), *_factors(frame))
        own = np.ones(len(values), dtype) if roots is None else roots[: len(values)]
        values = _ready(values, own, given, shape, weighted, np.dtype(dtype))
    ones = full or roots is None
    there = _ones(placement, size, np.dtype(dtype)) if ones else placement.per_row(roots)
    return placement.dense(placement.batch(values), there)


@lru_cache(maxsize=4)
def _ones(placement: Placement, count: int, dtype: np.dtype) -> jax.Array:
    """Return the weights of a full batch, which are transferred once and not for each batch."""
    return placement.per_row(np.ones(count, dtype))


def _factors(frame: Frame) -> tuple[float, float]:
    """Return two numbers of float32 whose product is the inverse of the unit, which may be out of its range."""
    power = round(math.log2(frame.unit))
    return 2.0 ** -(power // 2), 2.0 ** -(power - power // 2)


def _origin(frame: Frame, d: int, dtype: Any) -> np.ndarray:
    """Return the origin of a frame (d,)."""
    return np.zeros(d, dtype) if frame.origin is None else frame.origin.astype(dtype)


@partial(quick_jit, static_argnums=(3, 4, 5))
def _ready(
    values: jax.Array,
    roots: jax.Array,
    frame: tuple[jax.Array, jax.Array, jax.Array] | None,
    shape: tuple[int, int],
    weighted: bool,
    dtype: np.dtype,
) -> jax.Array:
    """Return rows converted for float64, in their frame, weighted, and padded with zeros."""
    if dtype == np.float64 or weighted or frame is not None:
        values = values.astype(dtype)
    if frame is not None:
        origin, one, other = frame
        # Rows of padding and of weight 0 stay zero.
        values = (values - origin[None, :]) * one * other * (roots > 0)[:, None]
    if weighted:
        values = values * roots[:, None]
    missing = [(0, want - have) for have, want in zip(values.shape, shape, strict=True)]
    return jnp.pad(values, missing)


def refuse_nonfinite_rows(source: Source, values: jax.Array, begin: int) -> None:
    """Raise ValueError if rows contain NaN or infinity, with the place of the first one.

    `begin` is the index of the first row in the source. Only three numbers are transferred to the host.
    """
    row, column, found = (one.item() for one in _first_nonfinite(values))
    if not np.isfinite(found):
        place = f"{source.name}: {source.describe_feature(column)} is {found} in row {begin + row}"
        if source.views:
            raise ValueError(
                f"{place}: remove such rows, or replace such numbers. For NaN, prepare(X, missing='mean') does "
                "that if X is a NumPy array."
            )
        raise ValueError(
            f'{place}: check the network and its input, use dtype="float32" if half precision overflows, or leave '
            'such rows out with nonfinite="skip".'
        )


@jax.jit
def _first_nonfinite(values: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return row, column and value of the first number that is not finite, or of any number if all are."""
    row = jnp.argmin(jnp.isfinite(values).all(axis=1))
    column = jnp.argmin(jnp.isfinite(values[row]))
    return row, column, values[row, column].astype(jnp.float32)
