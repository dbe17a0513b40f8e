r"""What a pass accumulates for a group of layers: scatter matrices, or remembered games.

Blocks have shape (layers, m, d). One compiled program updates all layers of a group, so the host neither waits nor
launches work for each layer.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.rows import DenseRows
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver.rows.moments import Moments, batch_moments, merge_moments, no_moments
from eigengame.solver.streams.batch_step import begin, play_batch
from eigengame.solver.streams.probe_sums import ProbeSums, add_batch, no_sums
from eigengame.solver.streams.stream import Stream

CHUNK = 2048
"""Rows of a product on a GPU: longer sums in float32 have larger errors."""


class Sums(NamedTuple):
    """What is accumulated for a group of L layers; all arrays have a leading axis of layers.

    Attributes
    ----------
    matrix : array of shape (L, d, d) or None
        Sums of the products of features about the origin of the rows.
    state : RememberedState or None
        Remembered games.
    moments : Moments
    probes : ProbeSums or None
        In float64 beside a matrix on a CPU, where they show how the matrix was rounded; then moments are too.
    """

    matrix: jax.Array | None
    state: RememberedState | None
    moments: Moments
    probes: ProbeSums | None


def no_scatter(layers: int, d: int, seed: int, probes: int, dtype: Any = np.float32) -> Sums:
    """Return scatter matrices without rows, for the route "covariance"; `dtype` is that of moments and probes."""
    with jax.enable_x64(np.dtype(dtype) == np.float64):
        moments, sums = no_moments(d, dtype), no_sums(probes, d, dtype, seed)
        matrix = jnp.zeros((layers, d, d), jnp.float32)
        return _committed(Sums(matrix, None, *_repeated((moments, sums), layers)))


def no_games(game: Remembered, layers: int, k: int, d: int, seed: int, probes: int) -> Sums:
    """Return remembered games without rows. All layers have the same initial players and probes."""
    stream = begin(game, k, d, np.float32, seed, ONE_DEVICE, probes)
    state, moments, sums = _repeated((stream.state, stream.moments, stream.probes), layers)
    return _committed(Sums(None, state, moments, sums))


def _committed(sums: Sums) -> Sums:
    """Return the sums committed to their device, as rows of torch are: otherwise two programs would be compiled."""
    there = next(iter(sums.moments.weight.devices()))
    return jax.device_put(sums, there)


def _repeated(tree: Any, count: int) -> Any:
    """Return a tree of arrays with a leading axis of `count` equal parts."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), tree)


def add_rows(game: Remembered, sums: Sums, values: jax.Array, roots: jax.Array) -> Sums:
    """Return the sums after one block, in the precision of the sums before it; see `_add_rows`."""
    with jax.enable_x64(sums.moments.mean.dtype == np.float64):
        return _add_rows(game, sums, values, roots)


@partial(quick_jit, static_argnums=0)
def _add_rows(game: Remembered, sums: Sums, values: jax.Array, roots: jax.Array) -> Sums:
    """Return the sums after one block.

    Parameters
    ----------
    game : Remembered
    sums : Sums
    values : array of shape (L, m, d)
        Rows of weight 0 are zero.
    roots : array of shape (L, m)
        Roots of the weights: 1, or 0 for padding.
    """
    if sums.matrix is None:
        # One layer after another: conditions inside an update would be computed both ways by `vmap`.
        def play(parts: Any) -> Any:
            own_values, own_roots, *now = parts
            return play_batch(game, ONE_DEVICE, DenseRows(own_values, own_roots), *now)[:3]

        now = (values, roots, sums.state, sums.moments, sums.probes)
        return Sums(None, *jax.lax.map(play, now))

    wide = sums.moments.mean.dtype == np.float64

    def add(parts: Any) -> Any:
        own_values, own_roots, moments, probes = parts
        if wide:
            own_values, own_roots = own_values.astype(np.float64), own_roots.astype(np.float64)
        rows = DenseRows(own_values, own_roots)
        own = batch_moments(rows)
        if probes is not None:
            probes = add_batch(probes, rows, moments, own, center=game.center)
        return merge_moments(moments, own), probes

    # One layer after another if rows are copied to float64.
    over_layers = partial(jax.lax.map, add) if wide else jax.vmap(add)
    moments, probes = over_layers((values, roots, sums.moments, sums.probes))
    return Sums(sums.matrix + _products(values), None, moments, probes)


def _products(values: jax.Array) -> jax.Array:
    """Return the products of features (L, d, d), summed in float32.

    Products of numbers in half precision are exact in float32, and fast on a GPU.
    """
    layers, m, d = values.shape
    if jax.default_backend() == "gpu" and m > CHUNK and m % CHUNK == 0:
        values = values.reshape(layers, m // CHUNK, CHUNK, d)
    else:
        values = values[:, None]
    precision = jax.lax.Precision.HIGHEST if values.dtype == jnp.float32 else None
    if jax.default_backend() == "cpu":
        # A CPU has no fast products of half precision.
        values = values.astype(jnp.float32)
    chunks = jnp.einsum(
        "lcmi,lcmj->lcij", values, values, precision=precision, preferred_element_type=jnp.float32
    )
    return jnp.sum(chunks, axis=1)


def stream_of(game: Remembered, sums: Sums, layer: int, k: int, rows: int) -> Stream:
    """Return the remembered game of one layer, by its place in the group."""
    state, moments, probes = jax.tree.map(
        lambda leaf: leaf[layer], (sums.state, sums.moments, sums.probes)
    )
    players = state.memory.players[:k]
    return Stream(state, moments, rows, ((0, players), (0, players)), probes=probes)
