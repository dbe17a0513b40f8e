"""Loops over rounds on the same rows, compiled once for any number of rounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sharding.gather import gather

BLOCK = 1024
"""Rounds in one call of a compiled loop."""


def run_rounds(
    block: Callable[[Any, Any], tuple[Any, Any]], state: Any, rounds: int
) -> tuple[Any, Any]:
    """Return the state after `rounds` rounds, and the outputs of all rounds stacked along a leading axis.

    `block` is compiled and calls `block_of_rounds`.
    """
    outputs = []
    for begin in range(0, rounds, BLOCK):
        state, output = block(state, np.int32(min(BLOCK, rounds - begin)))
        outputs.append(output)

    # Cut on the host: on the device another number of rounds would compile another slice.
    def joined(*leaves: jax.Array) -> jax.Array:
        return jnp.asarray(np.concatenate([gather(leaf) for leaf in leaves])[:rounds])

    return state, jax.tree.map(joined, *outputs)


def block_of_rounds(
    update: Callable[[Any], tuple[Any, Any]], state: Any, count: jax.Array
) -> tuple[Any, Any]:
    """Return the state after `count` updates, at most BLOCK, and their outputs in arrays of BLOCK rows.

    `count` is a traced value, where the length of `jax.lax.scan` would be static.
    """

    def body(i: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state, outputs = carry
        state, output = update(state)
        return state, jax.tree.map(partial(_set_row, i), outputs, output)

    shapes = jax.eval_shape(lambda: update(state)[1])
    outputs = jax.tree.map(lambda one: jnp.zeros((BLOCK, *one.shape), one.dtype), shapes)
    return jax.lax.fori_loop(0, count, body, (state, outputs))


def _set_row(i: jax.Array, array: jax.Array, row: jax.Array) -> jax.Array:
    """Return the array with its row i replaced."""
    return jax.lax.dynamic_update_index_in_dim(array, row, i, axis=0)
