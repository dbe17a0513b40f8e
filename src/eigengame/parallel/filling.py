"""Widths that do not divide are filled up with zeros, and which arrays of a state have a width."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MANY = 1_000_003
"""A width that nothing else has."""


def features_of(algorithm: Any, state: Any, k: int) -> Any:
    """Return a tree like the state that says which arrays have features as their last axis.

    Found by making a state for very many features, in shape only, and seeing where they are.
    """
    made = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((k, MANY), jnp.float32))
    wide = [leaf.shape[-1:] == (MANY,) for leaf in jax.tree.leaves(made)]
    return jax.tree.unflatten(jax.tree.structure(state), wide)


def up(size: int, parts: int) -> int:
    """Return the next multiple."""
    return -(-size // parts) * parts


def filled(values: Any, shape: tuple[int, ...]) -> Any:
    """Return an array followed by zeros along every axis up to this shape."""
    missing = [(0, want - have) for have, want in zip(values.shape, shape, strict=True)]
    if not any(after for _, after in missing):
        return values
    return np.pad(np.asarray(values), missing)
