"""Random probes that look for a direction larger than the players that they have missed."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.certificate import missed_level
from eigengame.game.rarely import rarely
from eigengame.game.rows import full_product
from eigengame.game.sphere import norms
from eigengame.images import image
from eigengame.parallel.gather import whole
from eigengame.reading import Passes


class Probes(NamedTuple):
    """Random directions outside the players, powered by M.

    Attributes
    ----------
    directions : array of shape (r, d)
        Unit rows.
    logs : array of shape (r,)
        Logarithm of the length each would have if it had not been scaled.
    powers : int
        Products with M so far.
    level : float
        The least bound so far on what lies outside the players.
    """

    directions: jax.Array
    logs: np.ndarray
    powers: int
    level: float


def draw_probes(seed: int, count: int, players: jax.Array) -> Probes:
    """Return Gaussian probes, their part along the players removed."""
    draws = jax.random.normal(jax.random.key(seed), (count, players.shape[1]), players.dtype)
    return _scaled(_outside(draws, players), np.zeros(count), 0, np.inf)


def power_probes(
    source: Passes, probes: Probes, players: jax.Array, mean: jax.Array | None, risk: float
) -> Probes:
    """Return the probes after one more product with M, by one pass, with the level they show.

    The risk is shared between looks, 1/2, 1/6, 1/12, ... of it, so that all together stay within it.
    """
    pictures = _outside(image(source, probes.directions, mean, "probes"), players)
    powers = probes.powers + 1
    after = _scaled(pictures, probes.logs, powers, probes.level)
    shift = after.logs.max()
    if not np.isfinite(shift):
        return after._replace(level=0.0)
    seen = missed_level(np.exp(2 * (after.logs - shift)), powers, risk / (powers * (powers + 1)))
    return after._replace(level=min(probes.level, seen * float(np.exp(shift / powers))))


@rarely
def _outside(directions: jax.Array, players: jax.Array) -> jax.Array:
    """Return the directions without their part in the players' span, twice over."""
    for _ in range(2):
        inside = full_product(directions, players.T)
        directions = directions - full_product(inside, players)
    return directions


def _scaled(directions: jax.Array, logs: np.ndarray, powers: int, level: float) -> Probes:
    """Return unit probes with the logarithms of their lengths added up."""
    unit, lengths = _unit(directions)
    with np.errstate(divide="ignore"):
        return Probes(unit, logs + np.log(whole(lengths).astype(np.float64)), powers, level)


@rarely
def _unit(directions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return unit rows, zero rows as they are, and the lengths they had."""
    lengths = norms(directions)
    return directions / jnp.where(lengths > 0, lengths, 1), lengths[:, 0]
