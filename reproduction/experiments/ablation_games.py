"""Games of `ablation`, with and without order and normaliser, and how learnt components are counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.algorithms import Alpha
from eigengame.game import Rules
from eigengame.linalg.products import full_product
from eigengame.metrics import STREAK_ANGLE
from reproduction.trials import Family

GAMES = {
    "the game": Rules(),
    "without order": Rules(hierarchy=False),
    "without normaliser": Rules(normaliser=False),
    "without both": Rules(hierarchy=False, normaliser=False),
}

VARIANTS = {"EigenGame": False, "EigenGame^R": True}
"""Whether gradients are projected on the tangent space."""


def _family(rules: Rules, riemannian: bool, step: Any) -> Alpha:
    return Alpha(step, riemannian=riemannian, rules=rules)


FAMILIES: Mapping[tuple[str, str], Family] = {
    (variant, game): partial(_family, rules, riemannian)
    for variant, riemannian in VARIANTS.items()
    for game, rules in GAMES.items()
}
"""Created once, so that each is compiled once."""


class Closeness(NamedTuple):
    """Angles between players and components, and the number of players at the first component.

    Attributes
    ----------
    own : array of shape (..., k)
        Angle of each player to its component.
    nearest : array of shape (..., k)
        Angle of each component to the closest player.
    crowd : array of shape (...)
        Number of players within pi/8 of the first component.
    """

    own: Any
    nearest: Any
    crowd: Any


def closeness(components: jax.Array, truth: jax.Array) -> Any:
    """Compute the closeness of players; a `Measure` of `play_trials`."""
    cosines = jnp.abs(full_product(components, truth.T))
    nearest = jnp.arccos(jnp.minimum(jnp.max(cosines, axis=0), 1))
    crowd = jnp.sum(cosines[:, 0] >= np.cos(STREAK_ANGLE))
    return Closeness(metrics.angular_error(components, truth), nearest, crowd)


def streak(seen: Closeness) -> np.ndarray:
    """Return the streak, shape (...)."""
    return metrics.streak_of(seen.own, STREAK_ANGLE)


def found(seen: Closeness) -> np.ndarray:
    """Return the number of components with any player within pi/8, shape (...).

    No player is that close to two components, so that no matching of players to components finds more.
    """
    return np.sum(seen.nearest <= STREAK_ANGLE, axis=-1)


COUNTS = {"streak": streak, "found": found}
"""Two ways to count learnt components; the footnote does not say which one it uses."""
