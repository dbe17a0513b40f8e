"""One pass over the inputs of a network: its rows are given to the groups of layers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame._system import interrupts
from eigengame.layerwise.accumulate import add_rows
from eigengame.layerwise.groups import Group, rows_of_group
from eigengame.sources.position_source import PositionSource

FIRST_ROWS = 1024
"""Rows of the first batch from which an origin is computed, on the host."""


def origins_of(source: PositionSource) -> dict[str, np.ndarray]:
    """Return an origin (d,) near the mean of each layer, from the first batch; empty if that can be read once only.

    Features whose mean is smaller than their deviation have 0: in half precision nothing would be gained. Origins
    are rounded to the precision of the rows, so that a difference of equal sizes is exact.
    """
    if not source.again:
        return {}
    found = next(source.batches())
    origins = {}
    for layer, rows in found.items():
        if not rows.chosen.rows:
            continue
        few = rows.values[: rows.chosen.rows : -(-rows.chosen.rows // FIRST_ROWS)]
        values = np.asarray(_to_float32(few), np.float64)
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        origin = np.where(np.isfinite(mean) & (np.abs(mean) > deviation), mean, 0)
        if origin.any():
            origins[layer] = origin.astype(jnp.dtype(source.dtype)).astype(np.float32)
    return origins


def _to_float32(values: Any) -> Any:
    """Return rows of torch or JAX as an array of the host in float32."""
    return (
        values.float().cpu().numpy() if hasattr(values, "cpu") else jnp.asarray(values, jnp.float32)
    )


def one_pass(
    source: PositionSource, groups: list[Group], origins: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Run the network over all inputs, and give rows to their groups; return the dtype of each layer's output."""
    kinds: dict[str, Any] = {}
    for found in source.batches(origins):
        kinds = kinds or {layer: rows.dtype for layer, rows in found.items()}
        for group in groups:
            for full in group.buffer.append(rows_of_group(group.layers, found, source.name)):
                _add(group, full)
        interrupts.check()
    for group in groups:
        for full in group.buffer.rest():
            _add(group, full)
    return kinds


def _add(group: Group, full: Any) -> None:
    """Add a block to a group."""
    layers, size = full.values.shape[:2]
    if full.rows == size and full.weights is None:
        weights: Any = _full(layers, size)
        group.rows += size
    else:
        weights = np.broadcast_to(np.arange(size) < full.rows, (layers, size)).astype(np.float32)
        if full.weights is not None:
            weights = weights * full.weights.astype(np.float32)
        group.rows += np.count_nonzero(weights, axis=1)
    after = add_rows(group.options.game(), group.sums, full.values, weights)
    # At most two blocks at a time, whose memory is used again: wait for the one before the one just started.
    if group.before is not None:
        group.before.moments.weight.block_until_ready()
    group.before, group.sums = group.sums, after


@lru_cache(maxsize=4)
def _full(layers: int, size: int) -> jax.Array:
    """Return the weights of a full block, which are transferred once and not for each block."""
    return jnp.ones((layers, size), jnp.float32)
