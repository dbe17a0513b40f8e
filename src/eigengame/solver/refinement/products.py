r"""Products with $M$ by whole passes, and better players from them.

Each pass multiplies one block of directions by $M$. The next players are the eigenvectors of $M$ within the span
of the players, their residual directions and the previous moves (Rayleigh-Ritz, in float64). Products of the next
players follow by linearity.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh

from eigengame.game.csr_rows import CSRRows
from eigengame.game.krylov_round import residual_directions
from eigengame.linalg.orthonormal import orthonormalise
from eigengame.linalg.products import full_product, long_product, measured_product, row_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.gather import gather
from eigengame.solver.passes.host_arrays import on_host
from eigengame.solver.passes.passes import Passes


class Imaged(NamedTuple):
    """Directions (K, d) and their images, the products with M (K, d)."""

    directions: jax.Array
    images: jax.Array


class Refined(NamedTuple):
    """Players and their last moves, both with images.

    Attributes
    ----------
    players : Imaged
        Orthonormal eigenvectors of M within their span, the largest value first.
    moves : Imaged or None
        The part of the last step outside the span of the previous players.
    """

    players: Imaged
    moves: Imaged | None = None


def image(
    passes: Passes, block: jax.Array, mean: jax.Array | None, task: str = "refinement"
) -> jax.Array:
    r"""Return $M W$ for the rows of `block` (K, d) by one pass, with $M$ about `mean` if given.

    Scores are centred before the second product: then an error of the mean enters by its square only, and products
    have no large common part to round.
    """
    if passes.sparse_on_host:
        return _image_on_host(passes, np.asarray(block), mean, task)
    # Committed to the devices of the block: otherwise the first two batches would compile twice.
    total = jnp.zeros_like(block, device=block.sharding)
    if mean is None:
        return passes.fold(partial(_add, block), total, task=task)
    level, sums = _level(mean, block)
    total, sums = passes.fold(partial(_add_centred, block, level), (total, sums), task=task)
    return _about(mean, total, sums)


def _image_on_host(passes: Passes, block: Any, mean: jax.Array | None, task: str) -> Any:
    """Version of `image` for sparse rows on the host: nothing is compiled."""
    total = np.zeros_like(block)
    if mean is None:
        found = passes.fold(partial(_add, block), total, task=task)
    else:
        centre: Any = np.asarray(mean)
        level, sums = full_product(centre[None, :], block.T), np.zeros_like(block[:, :1])
        found, sums = passes.fold(partial(_add_centred, block, level), (total, sums), task=task)
        found = found - sums * centre[None, :]
    # A pass that was read from a checkpoint is in the other order, in which products may be rounded otherwise.
    return np.ascontiguousarray(found)


@quick_jit
def _level(mean: jax.Array, block: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the scores of the mean, shape (1, K), and zeros for the sums of scores about it, (K, 1)."""
    return long_product(mean[None, :], block), jnp.zeros((len(block), 1), block.dtype)


@quick_jit
def _about(mean: jax.Array, total: jax.Array, sums: jax.Array) -> jax.Array:
    """Return the sum of directions of centred scores, with the mean of the rows removed."""
    return total - sums * mean[None, :]


def _add(block: jax.Array, total: jax.Array, rows: Any, _: int) -> jax.Array:
    """Add one batch. A named function, so that it can be sent to workers."""
    if isinstance(rows, CSRRows):
        return on_host(_add_product, rows, block, total)
    return _accumulate(rows, block, total)


def _add_centred(
    block: jax.Array, level: jax.Array, carry: tuple[jax.Array, jax.Array], rows: Any, _: int
) -> tuple[jax.Array, jax.Array]:
    """Add one batch about the mean."""
    if isinstance(rows, CSRRows):
        return on_host(_add_centred_product, rows, block, level, *carry)
    return _accumulate_centred(rows, block, level, *carry)


def _add_product(rows: Any, block: jax.Array, total: jax.Array) -> jax.Array:
    """Add the part of M W of one batch."""
    return rows.add_directions(total, rows.pass_scores(block))


def _add_centred_product(
    rows: Any, block: jax.Array, level: jax.Array, total: jax.Array, sums: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Add the part of M W of one batch by centred scores, and the sums of these."""
    constant = rows.constant()
    scores = rows.pass_scores(block) - constant * level
    return rows.add_directions(total, scores), sums + row_product(scores, constant)


_accumulate = quick_jit(_add_product)
_accumulate_centred = quick_jit(_add_centred_product)


def measure(passes: Passes, players: jax.Array, mean: jax.Array | None) -> Refined:
    """Return the eigenvectors of M within the span of the players, with images, by one pass."""
    players = orthonormalise(players)
    return _rayleigh_ritz(Imaged(players, image(passes, players, mean)), players.shape[0])


def improve(passes: Passes, now: Refined, mean: jax.Array | None) -> Refined:
    """Return better players by one pass over the residual directions."""
    players, images = now.players
    fresh = _fresh(players, images)
    directions, products = [players, fresh], [images, image(passes, fresh, mean)]
    if now.moves is not None:
        directions.append(now.moves.directions)
        products.append(now.moves.images)
    space = Imaged(jnp.concatenate(directions), jnp.concatenate(products))
    return _rayleigh_ritz(space, players.shape[0])


@quick_jit
def _fresh(players: jax.Array, images: jax.Array) -> jax.Array:
    """Return the residual directions."""
    return residual_directions(players, images, long_product(players, images))


def _rayleigh_ritz(space: Imaged, k: int) -> Refined:
    """Return the first k eigenvectors of M within a space; the small problem is solved in float64."""
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
    """Return coefficients (rows) of an orthonormal basis, block by block of k directions.

    The players come first and are kept. Of later blocks only the part outside the earlier ones is kept, and only
    if it is a good part of a unit direction: a small part is rounding, which dividing by its length would amplify.
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
    """Return `left @ right.T` in float64; large arrays are multiplied on the device in their own precision."""
    if left.size <= 2**25:
        return gather(left).astype(np.float64) @ gather(right).astype(np.float64).T
    return gather(measured_product(left, right)).astype(np.float64)


def _combine(coefficients: np.ndarray, space: Imaged) -> Imaged:
    """Return combinations of directions, and the same combinations of their images."""
    return _combined(jnp.asarray(coefficients, space.directions.dtype), space)


@quick_jit
def _combined(turn: jax.Array, space: Imaged) -> Imaged:
    """Compiled part of `_combine`."""
    return Imaged(full_product(turn, space.directions), full_product(turn, space.images))
