"""Small matrices of players and their products with M: inner products, residuals, gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh

from eigengame.game.sphere import project_tangent
from eigengame.linalg.orthonormal import safe_norms
from eigengame.linalg.products import full_product, long_product, measured_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.gather import gather, is_distributed

LARGE = 2**25
"""Size from which players on a device are measured there, in their own precision, with sums in chunks."""

PANEL = 2**18
"""Size of a panel of features that is multiplied at a time on the host: as much as stays in the cache."""


@dataclass(frozen=True)
class SmallProducts:
    """Small matrices of players V and images B.

    Attributes
    ----------
    gram : array of shape (K, K)
        $VB^T$, symmetric.
    turn : array of shape (K, K) or None
        $(VV^T)^{-1/2}$, which makes players orthonormal; None if they are too far from it.
    couplings : array of shape (K, K)
        Inner products of the residuals, of players as given.
    tilt : array of shape (K,)
        Angle of each player to the orthonormal one.
    gradient : array of shape (K,)
        Lengths of the Riemannian gradients.
    """

    gram: np.ndarray
    turn: np.ndarray | None
    couplings: np.ndarray
    tilt: np.ndarray
    gradient: np.ndarray


def _on_host(players: Any, images: Any) -> SmallProducts:
    """Compute them in float64 on the host, by panels of features: temporary arrays stay in the cache."""
    v, mv = (gather(one).astype(np.float64, copy=False) for one in (players, images))
    width = max(PANEL // max(len(v), 1), 64)
    panels = [slice(begin, begin + width) for begin in range(0, v.shape[1], width)]
    overlaps, product = (
        sum((v[:, one] @ other[:, one].T for one in panels), np.zeros((len(v), len(v))))
        for other in (v, mv)
    )
    gram, turn, tilt, inside = _small(overlaps, product)
    couplings = np.zeros_like(gram)
    for one in panels:
        residuals = mv[:, one] - inside @ v[:, one]
        couplings += residuals @ residuals.T
    gradient = _gradient(gram, overlaps, inside, couplings)
    return SmallProducts(gram, turn, couplings, tilt, gradient)


def _on_device(players: Any, images: Any) -> SmallProducts:
    """Compute them on the device, for players that are too large to transfer."""
    v, mv = jnp.asarray(players), jnp.asarray(images)
    product, overlaps = (np.asarray(measured_product(v, one), np.float64) for one in (mv, v))
    gram, turn, tilt, inside = _small(overlaps, product)
    small = jnp.asarray(inside, v.dtype), jnp.asarray(2 * _coefficients(gram).T, v.dtype)
    couplings, lengths = _couplings_on_device(v, mv, *small)
    lengths = np.asarray(lengths, np.float64)
    return SmallProducts(gram, turn, np.asarray(couplings, np.float64), tilt, lengths)


def _small(
    overlaps: np.ndarray, product: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Return gram, turn, tilt, and the coefficients (K, K) of the part of each image within the players."""
    gram = (product + product.T) / 2
    sizes, axes = eigh(overlaps)
    if not sizes[0] > 0.5:
        return gram, None, np.full(len(gram), math.pi / 2), gram
    turn, back = ((axes * sizes**power) @ axes.T for power in (-0.5, 0.5))
    along = np.diag(back).copy()
    tilt = np.arctan2(np.linalg.norm(back - np.diag(along), axis=1), along)
    return gram, turn, tilt, product.T @ turn @ turn


@quick_jit
def _couplings_on_device(
    v: jax.Array, mv: jax.Array, inside: jax.Array, steps: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return inner products of residuals, and lengths of the gradients."""
    residuals = mv - full_product(inside, v)
    gradient = project_tangent(v, full_product(steps, mv))
    return long_product(residuals, residuals), safe_norms(gradient)


def _coefficients(gram: np.ndarray) -> np.ndarray:
    """Return the coefficients (K, K) of the gradients in terms of images (eq. ui_grad)."""
    rewards = np.where(np.diag(gram) > 0, np.diag(gram), 1)
    return np.eye(len(gram)) - np.triu(gram / rewards[:, None], 1)


def _gradient(
    gram: np.ndarray, overlaps: np.ndarray, inside: np.ndarray, couplings: np.ndarray
) -> np.ndarray:
    """Return the lengths (K,) of the Riemannian gradients from their parts within and outside the players.

    Of no use for players that are far from orthonormal, which have no `turn`: residuals are not outside them.
    """
    steps = 2 * _coefficients(gram).T
    within = steps @ inside
    within -= np.diag(
        np.sum(within * overlaps, axis=1)
    )  # no gradient has a part along its own player
    apart = np.einsum("ij,jk,ik->i", steps, couplings, steps, optimize=True)
    lengths2 = np.einsum("ij,jk,ik->i", within, overlaps, within, optimize=True) + apart
    return np.sqrt(np.maximum(lengths2, 0))


def small_products(players: Any, images: Any) -> SmallProducts:
    """Return the small matrices of players (K, d) and their images (K, d).

    Those on the host stay there, in float64: on the device they may be rounded to float32.
    """
    there = not isinstance(players, np.ndarray) and not is_distributed(players)
    large = there and players.size > LARGE
    return (_on_device if large else _on_host)(players, images)
