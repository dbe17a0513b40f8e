"""A blob inside a ring, and players that may bend: what `general` is played with."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import general

RADIUS, THICK = 3.0, 0.15
"""Of the ring, and the standard deviation of its rows across it."""
BLOB, BESIDE = 0.3, 0.5
"""Standard deviations of the blob, and of a third feature that tells nothing."""


def blob_and_ring(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of 3 features with mean 0, half of them of the blob, and which are of the ring."""
    rng = np.random.default_rng(seed)
    ring = np.arange(n) % 2 == 1
    turn, far = rng.uniform(0, 2 * math.pi, n), RADIUS + THICK * rng.normal(size=n)
    around = far[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    plane = np.where(ring[:, None], around, BLOB * rng.normal(size=(n, 2)))
    data = np.column_stack([plane, BESIDE * rng.normal(size=n)])
    return data - data.mean(axis=0, keepdims=True), ring


def layered(parameters: Any, rows: jax.Array) -> jax.Array:
    """Return the outputs of `general.mlp`, centred: of one layer a linear score, of two a tanh network."""
    return _centred(general.mlp(parameters, rows))


def sorted_pairs(parameters: Any, rows: jax.Array) -> jax.Array:
    """Return the centred outputs of a network that sorts its hidden values two by two.

    The larger and the smaller of two numbers have the length of the two: unlike tanh, sorting bends
    without making anything shorter.
    """
    first, second = jnp.split(rows @ parameters[0], 2, axis=1)
    hidden = jnp.concatenate([jnp.maximum(first, second), jnp.minimum(first, second)], axis=1)
    return _centred((hidden @ parameters[1])[:, 0])


def isometric_pairs(parameters: Any, rows: jax.Array) -> jax.Array:
    """Return the same of a first layer that also shrinks nothing: its rows are made orthonormal.

    Kept from stretching alone, a layer is free to forget all directions but one.
    """
    turned = jnp.linalg.qr(parameters[0].T)[0].T
    return sorted_pairs([turned, *parameters[1:]], rows)


def _centred(outputs: jax.Array) -> jax.Array:
    """Return outputs less their mean, so that a reward is a variance: a constant is no component."""
    return outputs - jnp.mean(outputs)


def told_apart(outputs: np.ndarray, ring: np.ndarray) -> float:
    """Return the share of rows on the right side of the plane that least squares puts between the two."""
    spread = outputs.std(axis=0, keepdims=True)
    columns = np.column_stack([outputs / np.where(spread > 0, spread, 1), np.ones(len(ring))])
    plane = np.linalg.lstsq(columns, np.where(ring, 1.0, -1.0), rcond=None)[0]
    return float(np.mean((columns @ plane > 0) == ring))


def largest_overlap(outputs: np.ndarray) -> float:
    """Return the largest cosine between two players' outputs."""
    lengths = np.linalg.norm(outputs, axis=0, keepdims=True)
    unit = outputs / np.where(lengths > 0, lengths, 1)
    cosines = np.abs(unit.T @ unit)
    return float(cosines[~np.eye(len(cosines), dtype=bool)].max())
