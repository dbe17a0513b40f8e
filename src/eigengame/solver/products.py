r"""Exact products with $M$ by whole passes, and the players they lead to.

Each pass multiplies one block of directions by $M$. Players, the residual directions and the previous
moves then meet in a small problem whose equilibrium is the next players (Rayleigh-Ritz, in float64);
images follow by linearity.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh

from eigengame.game.krylov_round import residual_directions
from eigengame.linalg.autotune import jit_without_autotune
from eigengame.linalg.orthonormal import orthonormalise
from eigengame.linalg.products import full_product, long_product, measured_product
from eigengame.sharding.gather import whole
from eigengame.solver.passes import Passes


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


def image(
    source: Passes, block: jax.Array, mean: jax.Array | None, task: str = "refinement"
) -> jax.Array:
    r"""Return $M W$ for the rows of `block` (K, d) by one pass, with $M$ about `mean` where given.

    Scores are centred before they meet the rows again: then an error of the mean counts only by its
    square, and products have no large common part to round.
    """
    # Where the block is, and told so: else the first batch would be compiled for, and then the second.
    total = jnp.zeros_like(block, device=block.sharding)
    if mean is None:
        return source.fold(partial(_add, block), total, task=task)
    level, sums = _level(mean, block)
    total, sums = source.fold(partial(_add_centred, block, level), (total, sums), task=task)
    return _about(mean, total, sums)


@jit_without_autotune
def _level(mean: jax.Array, block: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the scores of the mean, shape (1, K), and room for the sums of scores about it, (K, 1)."""
    return long_product(mean[None, :], block), jnp.zeros((len(block), 1), block.dtype)


@jit_without_autotune
def _about(mean: jax.Array, total: jax.Array, sums: jax.Array) -> jax.Array:
    """Return what directions of centred scores add up to, less what rows that are not centred brought in."""
    return total - sums * mean[None, :]


def _add(block: jax.Array, total: jax.Array, rows: Any, _: int) -> jax.Array:
    """Add one batch: a step by name, which can be sent to where the rows are."""
    return _accumulate(rows, block, total)


def _add_centred(
    block: jax.Array, level: jax.Array, carry: tuple[jax.Array, jax.Array], rows: Any, _: int
) -> tuple[jax.Array, jax.Array]:
    """Add one batch about the mean."""
    return _accumulate_centred(rows, block, level, *carry)


@jax.jit
def _accumulate(rows: Any, block: jax.Array, total: jax.Array) -> jax.Array:
    """Add one batch's share of M W."""
    return rows.add_directions(total, rows.pass_scores(block))


@jax.jit
def _accumulate_centred(
    rows: Any, block: jax.Array, level: jax.Array, total: jax.Array, sums: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Add one batch's share of M W by scores less those of the mean, and of their sums."""
    constant = rows.constant()
    scores = rows.pass_scores(block) - constant * level
    return rows.add_directions(total, scores), sums + full_product(scores.T, constant)


def measure(source: Passes, players: jax.Array, mean: jax.Array | None) -> Refined:
    """Return the players settled on all of the data, with their images: one pass."""
    players = orthonormalise(players)
    return _settle_all(Imaged(players, image(source, players, mean)), players.shape[0])


def improve(source: Passes, now: Refined, mean: jax.Array | None) -> Refined:
    """Return better players by one pass over the residual directions."""
    players, images = now.players
    fresh = _fresh(players, images)
    directions, pictures = [players, fresh], [images, image(source, fresh, mean)]
    if now.moves is not None:
        directions.append(now.moves.directions)
        pictures.append(now.moves.images)
    space = Imaged(jnp.concatenate(directions), jnp.concatenate(pictures))
    return _settle_all(space, players.shape[0])


@jit_without_autotune
def _fresh(players: jax.Array, images: jax.Array) -> jax.Array:
    """Return the residual directions."""
    return residual_directions(players, images, long_product(players, images))


def _settle_all(space: Imaged, k: int) -> Refined:
    """Return the equilibrium within the space: the small problem is solved in float64."""
    overlaps = _inner_products(space.directions, space.directions)
    gram = _inner_products(space.directions, space.images)
    basis = _orthonormal_basis(overlaps, k)
    _, turns = eigh(basis @ ((gram + gram.T) / 2) @ basis.T)
    chosen = turns.T[::-1][:k] @ basis
    players = _combine(chosen, space)
    if len(overlaps) == k:
        return Refined(players)
    outside = chosen.copy()
    outside[:, :k] = 0
    length = np.sqrt(np.maximum(np.sum((outside @ overlaps) * outside, axis=1), 0))
    outside /= np.where(length > 0, length, 1)[:, None]
    return Refined(players, _combine(outside, space))


def _orthonormal_basis(overlaps: np.ndarray, k: int) -> np.ndarray:
    """Return coefficients (rows) of an orthonormal basis, block after block of k directions.

    Players come first and are kept whole; of later blocks only what is new to the earlier ones is, and
    only where it is a good part of a unit direction: the rest is rounding, and dividing by its length
    would make it large.
    """
    basis = np.zeros((0, len(overlaps)))
    for begin in range(0, len(overlaps), k):
        block = np.eye(len(overlaps))[begin : begin + k]
        for _ in range(2):  # twice is enough
            block = block - block @ overlaps @ basis.T @ basis
        sizes, axes = eigh(block @ overlaps @ block.T)
        kept = sizes > (0.0 if begin == 0 else 1e-3)
        basis = np.concatenate([basis, (axes[:, kept] / np.sqrt(sizes[kept])).T @ block])
    return basis


def _inner_products(left: jax.Array, right: jax.Array) -> np.ndarray:
    """Return `left @ right.T` in float64, summed in float64 too unless that would be a long sum."""
    if left.size <= 2**25:
        return whole(left).astype(np.float64) @ whole(right).astype(np.float64).T
    return whole(measured_product(left, right)).astype(np.float64)


def _combine(coefficients: np.ndarray, space: Imaged) -> Imaged:
    """Return combinations of directions and, alike, of their images."""
    return _combined(jnp.asarray(coefficients, space.directions.dtype), space)


@jit_without_autotune
def _combined(turn: jax.Array, space: Imaged) -> Imaged:
    """Return the same, compiled."""
    return Imaged(full_product(turn, space.directions), full_product(turn, space.images))
