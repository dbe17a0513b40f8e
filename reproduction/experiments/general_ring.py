"""Data and players of `general`: a blob inside a ring, linear and non-linear players."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import general

RADIUS, THICK = 3.0, 0.15
"""Radius of the ring, and standard deviation of the distance of its rows."""
BLOB, NOISE = 0.3, 0.5
"""Standard deviations of the blob, and of a third feature without information."""


def blob_and_ring(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of 3 features with mean 0, and a mask of the half that belongs to the ring."""
    rng = np.random.default_rng(seed)
    ring = np.arange(n) % 2 == 1
    turn, far = rng.uniform(0, 2 * math.pi, n), RADIUS + THICK * rng.normal(size=n)
    around = far[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    plane = np.where(ring[:, None], around, BLOB * rng.normal(size=(n, 2)))
    data = np.column_stack([plane, NOISE * rng.normal(size=n)])
    return data - data.mean(axis=0, keepdims=True), ring


def layered(parameters: Any, rows: jax.Array) -> jax.Array:
    """Return the centred outputs of `general.mlp`: a linear score for one layer, a tanh network for two."""
    return _centred(general.mlp(parameters, rows))


def sorted_pairs(parameters: Any, rows: jax.Array) -> jax.Array:
    """Return the centred outputs of a network that sorts its hidden values in pairs.

    Sorting is non-linear and preserves lengths, unlike tanh.
    """
    first, second = jnp.split(rows @ parameters[0], 2, axis=1)
    hidden = jnp.concatenate([jnp.maximum(first, second), jnp.minimum(first, second)], axis=1)
    return _centred((hidden @ parameters[1])[:, 0])


def isometric_pairs(parameters: Any, rows: jax.Array) -> jax.Array:
    """Return the outputs of `sorted_pairs` with an isometric first layer (orthonormal rows).

    A layer that may only not increase lengths can lose all directions but one.
    """
    turned = jnp.linalg.qr(parameters[0].T)[0].T
    return sorted_pairs([turned, *parameters[1:]], rows)


def _centred(outputs: jax.Array) -> jax.Array:
    """Subtract the mean, so that a reward is a variance."""
    return outputs - jnp.mean(outputs)


def classified(outputs: np.ndarray, ring: np.ndarray) -> float:
    """Return the share of rows that a least-squares linear classifier assigns correctly."""
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
