"""Rows that are on the device already, such as a network's: made ready for play there, never on the host."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.rows import DenseRows
from eigengame.sharding.placement import Placement
from eigengame.sources import Source


def rows_on_device(
    values: jax.Array, weights: np.ndarray, weighted: bool, dtype: Any, place: Placement
) -> DenseRows:
    """Return rows of a game: values as they are, in their own precision, wherever that can be.

    Parameters
    ----------
    values : array of shape (m, d)
        Rows of weight 0 are zeros already.
    weights : array of shape (size,)
        How often each row counts; zeros beyond m.
    weighted : bool
        Whether some weights are neither 0 nor 1, so that rows have to be multiplied.
    dtype : dtype
        Precision of play. Products widen rows in half precision by themselves; for float64 they are
        widened here, for what is computed from them alone.
    place : Placement
    """
    if place.processes > 1:
        raise ValueError(
            "rows that a network computes cannot be shared between processes: fit in each process on its own "
            "share of the data, and merge the models."
        )
    roots = np.sqrt(weights)
    shape = (place.height(len(weights)), place.width(values.shape[1]))
    wide = np.dtype(dtype) == np.float64
    if wide or weighted or values.shape != shape:
        values = _ready(values, roots[: len(values)], shape, weighted, np.dtype(dtype))
    return place.dense(place.batch(values), place.per_row(roots))


@partial(jax.jit, static_argnums=(2, 3, 4))
def _ready(
    values: jax.Array, roots: jax.Array, shape: tuple[int, int], weighted: bool, dtype: np.dtype
) -> jax.Array:
    """Return rows widened for float64, weighted, and filled up with zeros."""
    if dtype == np.float64 or weighted:
        values = values.astype(dtype)
    if weighted:
        values = values * roots[:, None]
    missing = [(0, want - have) for have, want in zip(values.shape, shape, strict=True)]
    return jnp.pad(values, missing)


def first_nonfinite(source: Source, values: jax.Array, begin: int) -> None:
    """Raise where rows, the first of which is row `begin` of the source, have NaN or infinity.

    It says where the first one is: three numbers come to the host, not the rows.
    """
    row, column, found = (one.item() for one in _look(values))
    if not np.isfinite(found):
        raise ValueError(
            f"{source.name}: {source.describe_feature(column)} is {found} in row {begin + row}: look at the "
            'network and its input, take dtype="float32" if it is half precision that cannot hold it, or leave '
            'such rows out by nonfinite="skip" (or "zero").'
        )


@jax.jit
def _look(values: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return row, column and value of the first number that is not finite, or any where all are."""
    row = jnp.argmin(jnp.isfinite(values).all(axis=1))
    column = jnp.argmin(jnp.isfinite(values[row]))
    return row, column, values[row, column].astype(jnp.float32)
