"""Mean and variance of each feature, accumulated batch by batch and merged exactly (Chan et al., 1983)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.csr_rows import CSRRows
from eigengame.game.host_rows import HostRows
from eigengame.game.memory import common_mean
from eigengame.game.rows import DenseRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.linalg.library import array_namespace
from eigengame.linalg.wide import rows_fit
from eigengame.sharding.placement import ONE_DEVICE, Placement


class Moments(NamedTuple):
    """Total weight, mean (d,) and sum of squared deviations (d,) of the rows seen so far."""

    weight: jax.Array
    mean: jax.Array
    scatter: jax.Array


def no_moments(d: int, dtype: Any, place: Placement = ONE_DEVICE) -> Moments:
    """Return the moments of no rows."""
    zero, none = np.zeros((), dtype), np.zeros(d, dtype)
    return Moments(place.replicated(zero), place.per_feature(none), place.per_feature(none))


def placed_moments(moments: Moments, place: Placement) -> Moments:
    """Return the moments on the devices of a placement."""
    return Moments(
        place.replicated(moments.weight),
        place.per_feature(moments.mean),
        place.per_feature(moments.scatter),
    )


def gathered_moments(moments: Moments, d: int, place: Placement) -> Moments:
    """Return the moments of d features on one device."""
    return Moments(
        place.gathered(moments.weight),
        place.gathered(moments.mean, d),
        place.gathered(moments.scatter, d),
    )


def kept_moments(moments: Moments, place: Placement) -> Moments:
    """Constrain moments inside jit to the devices of `no_moments`."""
    return Moments(
        moments.weight,
        place.constrain_features(moments.mean),
        place.constrain_features(moments.scatter),
    )


def batch_moments(rows: DenseRows | SparseRows | CSRRows | HostRows) -> Moments:
    """Return the moments of one weighted batch."""
    if isinstance(rows, CSRRows | HostRows):
        return _moments_on_host(rows)
    if isinstance(rows, SparseRows):
        weights = rows.weights
        share = weights[rows.row] * rows.entries
        sums = jax.ops.segment_sum(share, rows.column, rows.features)
        squares = jax.ops.segment_sum(share * rows.entries, rows.column, rows.features)
    else:
        sums, squares = _column_sums(rows)
        weights = jnp.square(rows.constant())
    weight = jnp.sum(weights)
    mean = sums / jnp.where(weight > 0, weight, 1)
    return Moments(weight, mean, jnp.maximum(squares - weight * jnp.square(mean), 0))


def _moments_on_host(rows: CSRRows | HostRows) -> Moments:
    """Return the moments of rows on the host, summed in float64 and rounded once."""
    sums, squares = rows.column_sums()
    weight = np.sum(np.square(rows.roots, dtype=np.float64))
    mean = sums / (weight if weight > 0 else 1)
    scatter = np.maximum(squares - weight * mean**2, 0)
    dtype = rows.values.dtype
    return Moments(*(np.asarray(one, dtype) for one in (weight, mean, scatter)))  # type: ignore[arg-type]


def _column_sums(rows: DenseRows) -> tuple[jax.Array, jax.Array]:
    """Return the sum and the sum of squares of each column (d,), in at least float32."""
    if rows.one_device and rows_fit(rows.values):
        from eigengame.linalg.kernels import passes as kernels

        return kernels.column_sums(rows.constant()[:, 0], rows.values)
    if jax.default_backend() == "gpu" and rows.parts == 1:
        # One pass over the rows for both.
        values = rows.values.astype(jnp.promote_types(rows.values.dtype, jnp.float32))
        return jnp.sum(rows.constant() * values, axis=0), jnp.sum(jnp.square(values), axis=0)
    return rows.directions(rows.constant())[0], _column_squares(rows)


def _column_squares(rows: DenseRows) -> jax.Array:
    """Return the sum of squares of each column (d,).

    On a CPU a sum along the columns of wide rows waits for memory at each number. So up to 16 rows of one device
    are added first, and a product adds the rest.
    """
    m, d = rows.values.shape
    wide = jnp.promote_types(rows.values.dtype, jnp.float32)
    group = math.gcd(m // rows.parts, 16)
    stacked = rows.values.reshape(m // group, group, d)
    partial = jnp.square(stacked[:, 0].astype(wide))
    for i in range(1, group):
        partial = partial + jnp.square(stacked[:, i].astype(wide))
    summed = replace(rows, values=partial, roots=None, mean=None)
    return summed.directions(summed.constant())[0]


def merge_moments(one: Moments, other: Moments) -> Moments:
    """Return the moments of both sets of rows together."""
    total = one.weight + other.weight
    xp = array_namespace(total)
    share = other.weight / xp.where(total > 0, total, 1)
    step = other.mean - one.mean
    return Moments(
        total,
        common_mean(one.mean, one.weight, other.mean, other.weight),
        one.scatter + other.scatter + one.weight * share * xp.square(step),
    )


@jax.jit
def add_moments(moments: Moments, rows: DenseRows | SparseRows) -> Moments:
    """Return the moments with one more batch."""
    return merge_moments(moments, batch_moments(rows))


def fade_moments(moments: Moments, keep: jax.Array) -> Moments:
    """Return the moments with the weight of all rows multiplied by `keep`."""
    return Moments(keep * moments.weight, moments.mean, keep * moments.scatter)
