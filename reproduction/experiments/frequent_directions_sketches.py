"""Sharded Frequent Directions as in the appendix: its components, and the time of its parts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import FrequentDirections, recover_components
from eigengame.algorithms.frequent_directions import SketchState
from eigengame.game import DenseRows
from reproduction.trials import one_thread


@cache
def _update(l: int) -> Callable[..., Any]:
    return jax.jit(FrequentDirections(l).update)


def _empty(rows: jax.Array, k: int, l: int) -> SketchState:
    return FrequentDirections(l).init(jnp.zeros((k, rows.shape[1]), rows.dtype))


def sketched(rows: jax.Array, k: int, l: int) -> SketchState:
    """Return the sketch of rows (n, d), in one pass."""
    return _update(l)(DenseRows(rows), _empty(rows, k, l))[0]


def sharded(rows: jax.Array, k: int, l: int, shards: int) -> SketchState:
    """Return the sketch of the stacked sketches of all shards, in one pass."""
    each = [sketched(shard, k, l).sketch for shard in jnp.split(rows, shards)]
    return sketched(jnp.concatenate(each), k, l)


def components_of(rows: jax.Array, k: int, l: int, shards: int) -> dict[str, jax.Array]:
    """Return three estimates of the components by a sharded sketch, (k, d) each.

    Its first rows, its right singular vectors, and the singular vectors of the data projected on it, which needs
    a second pass.
    """
    with one_thread():
        state = sharded(rows, k, l, shards)
        return {
            "sketch rows": state.sketch[:k],
            "sketch SVD": FrequentDirections(l).components(state),
            "recovered": recover_components(rows, state)[1],
        }


def seconds_by_rows(rows: jax.Array, k: int, l: int, repeats: int) -> dict[int, float]:
    """Return the seconds of Frequent Directions for 2l, 4l, 8l, ... rows, up to all of them."""
    counts = [2 * l * 2**j for j in range(1 + int(math.log2(len(rows) // (2 * l))))]
    empty, update = _empty(rows, k, l), _update(l)
    calls = {count: partial(update, DenseRows(rows[:count]), empty) for count in counts}
    return shortest(calls, repeats)


def seconds_of_merge(rows: jax.Array, k: int, l: int, repeats: int) -> float:
    """Return the seconds of a merge of two sketches."""
    one, other = (sketched(half, k, l) for half in jnp.split(rows[: 4 * l], 2))
    merge = jax.jit(FrequentDirections(l).merge)
    return shortest({2: partial(merge, one, other)}, repeats)[2]


def shortest(calls: Mapping[int, Callable[[], Any]], repeats: int) -> dict[int, float]:
    """Return the shortest time of each call in seconds, without compilation.

    The calls alternate, so that other load on the machine affects all of them alike.
    """
    taken = dict.fromkeys(calls, math.inf)
    for turn in range(1 + repeats):
        for name, call in calls.items():
            begun = time.perf_counter()
            with one_thread():
                jax.block_until_ready(call())
            if turn:
                taken[name] = min(taken[name], time.perf_counter() - begun)
    return taken


def shuffled(data: np.ndarray, seed: int) -> jax.Array:
    """Return the rows in random order."""
    order = np.random.default_rng(seed).permutation(len(data))
    return jnp.asarray(data[order], jnp.float32)
