r"""Further passes over data that can be read again: exact products with $M$ until the angles are small.

Each pass multiplies one block of directions by $M$ exactly. Players, the residual directions and the
previous moves then meet in a small problem whose equilibrium is the next players (Rayleigh-Ritz, in
float64); images follow by linearity. When the players are still, random probes look for what may have
been missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh

from eigengame.certificate import missed_level
from eigengame.game.rounds import residual_directions
from eigengame.game.rows import small_product
from eigengame.game.sphere import orthonormalise

Passes = Callable[[], Iterable[Any]]
"""A source that can be read again: each call gives the batches (rows) of one pass."""


class Imaged(NamedTuple):
    """Directions (K, d) with what M makes of them (K, d)."""

    directions: jax.Array
    images: jax.Array


class Refined(NamedTuple):
    """Settled players and their last moves, both with images.

    Attributes
    ----------
    players : Imaged
        Orthonormal, settled, the strongest first.
    moves : Imaged or None
        The part of the last step outside the players before it.
    """

    players: Imaged
    moves: Imaged | None = None


def image(source: Passes, block: jax.Array, mean: jax.Array | None) -> jax.Array:
    r"""Return $M W$ for the rows of `block` (K, d) by one pass, with $M$ about `mean` where given."""
    total = jnp.zeros_like(block)
    sums = jnp.zeros((block.shape[0], 1), block.dtype)
    for rows in source():
        total, sums = _accumulate(rows, block, total, sums, mean is not None)
    return total if mean is None else total - sums * mean[None, :]


@partial(jax.jit, static_argnums=4, donate_argnums=(2, 3))
def _accumulate(
    rows: Any, block: jax.Array, total: jax.Array, sums: jax.Array, centred: bool
) -> tuple[jax.Array, jax.Array]:
    """Add one batch's share of M W, and of the scores' sums."""
    scores = rows.scores(block)
    if centred:
        sums = sums + small_product(scores.T, rows.constant())
    return total + rows.directions(scores), sums


def measure(source: Passes, players: jax.Array, mean: jax.Array | None) -> Refined:
    """Return the players settled on all of the data, with their images: one pass."""
    players = orthonormalise(players)
    return _settle_all(Imaged(players, image(source, players, mean)), players.shape[0])


def improve(source: Passes, now: Refined, mean: jax.Array | None) -> Refined:
    """Return better players by one pass over the residual directions."""
    players, images = now.players
    gram = small_product(players, images.T)
    fresh = residual_directions(players, images, gram)
    directions, pictures = [players, fresh], [images, image(source, fresh, mean)]
    if now.moves is not None:
        directions.append(now.moves.directions)
        pictures.append(now.moves.images)
    space = Imaged(jnp.concatenate(directions), jnp.concatenate(pictures))
    return _settle_all(space, players.shape[0])


def _settle_all(space: Imaged, k: int) -> Refined:
    """Return the equilibrium within the space: the small problem is solved in float64."""
    overlaps = np.asarray(small_product(space.directions, space.directions.T), np.float64)
    gram = np.asarray(small_product(space.directions, space.images.T), np.float64)
    eps = float(jnp.finfo(space.directions.dtype).eps)
    sizes, axes = eigh(overlaps)
    # Directions within rounding of the others would bring noise divided by nearly zero.
    kept = sizes > 100 * len(sizes) * eps * sizes[-1]
    basis = axes[:, kept] / np.sqrt(sizes[kept])
    _, turns = eigh(basis.T @ ((gram + gram.T) / 2) @ basis)
    chosen = (basis @ turns[:, ::-1][:, :k]).T
    players = _combine(chosen, space)
    if len(overlaps) == k:
        return Refined(players)
    outside = chosen.copy()
    outside[:, :k] = 0
    length = np.sqrt(np.maximum(np.sum((outside @ overlaps) * outside, axis=1), 0))
    outside /= np.where(length > eps, length, 1)[:, None]
    return Refined(players, _combine(outside, space))


def _combine(coefficients: np.ndarray, space: Imaged) -> Imaged:
    """Return combinations of directions and, alike, of their images."""
    turn = jnp.asarray(coefficients, space.directions.dtype)
    return Imaged(small_product(turn, space.directions), small_product(turn, space.images))


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
    pictures = _outside(image(source, probes.directions, mean), players)
    powers = probes.powers + 1
    after = _scaled(pictures, probes.logs, powers, probes.level)
    shift = after.logs.max()
    if not np.isfinite(shift):
        return after._replace(level=0.0)
    seen = missed_level(np.exp(2 * (after.logs - shift)), powers, risk / (powers * (powers + 1)))
    return after._replace(level=min(probes.level, seen * float(np.exp(shift / powers))))


def _outside(directions: jax.Array, players: jax.Array) -> jax.Array:
    """Return the directions without their part in the players' span, twice over."""
    for _ in range(2):
        inside = small_product(directions, players.T)
        directions = directions - small_product(inside, players)
    return directions


def _scaled(directions: jax.Array, logs: np.ndarray, powers: int, level: float) -> Probes:
    """Return unit probes with the logarithms of their lengths added up."""
    lengths = np.asarray(jnp.linalg.norm(directions, axis=1), np.float64)
    unit = (
        directions
        / jnp.where(jnp.asarray(lengths) > 0, jnp.asarray(lengths), 1).astype(directions.dtype)[
            :, None
        ]
    )
    with np.errstate(divide="ignore"):
        return Probes(unit, logs + np.log(lengths), powers, level)
