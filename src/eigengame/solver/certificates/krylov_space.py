r"""A growing block Krylov space, with the product of each of its directions with $M$.

Each pass adds the residual directions of the players. The players are the eigenvectors of $M$ within the space
(Rayleigh-Ritz), and all other directions of the space are kept as well, as far as memory allows. Everything is in
float64 on the host, whatever the precision of the passes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from eigengame.solver.certificates.rounding import OPERATIONS, gamma

FRESH = 1e-3
"""Least squared length of a direction, of unit residuals, that counts as independent of the others."""

FEATURES = 2**16
"""Features that are rotated at a time."""

MOST_SPACE = 2**27
"""Largest size of the directions of a Krylov space: 1 GiB, and as much again for their products."""


def most_directions(players: int, d: int) -> int:
    """Return the number of directions above which a Krylov space is truncated."""
    return max(4 * players, MOST_SPACE // d)


class KrylovSpace(NamedTuple):
    """Orthonormal eigenvectors of M within their span, the largest value first.

    Attributes
    ----------
    directions, images : arrays of shape (b, d)
        The eigenvectors, and M times each.
    sums, scores : arrays of shape (b,)
        Bounds on both parts of the error of each image (`Rounding.parts`).
    """

    directions: np.ndarray
    images: np.ndarray
    sums: np.ndarray
    scores: np.ndarray

    @property
    def floor(self) -> np.ndarray:
        """Bound on the error of each image, shape (b,)."""
        return self.sums + self.scores * math.sqrt(max(float(self.values[0]), 0.0))

    @property
    def values(self) -> np.ndarray:
        """Eigenvalues of M within the span, shape (b,)."""
        return np.sum(self.directions * self.images, axis=1)

    def image_of(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return M times the part of a block (m, d) within the space, and the part outside of it."""
        inside = block @ self.directions.T
        return inside @ self.images, block - inside @ self.directions

    def first(self, count: int) -> KrylovSpace:
        """Return the space of the first directions."""
        return KrylovSpace(*(part[:count] for part in self))


def krylov_space(
    directions: np.ndarray,
    images: np.ndarray,
    sums: np.ndarray,
    scores: np.ndarray,
    *,
    in_place: bool = False,
) -> KrylovSpace:
    """Return the space of nearly orthonormal directions (b, d) with their images.

    With `in_place`, both arrays are changed.
    """
    sizes, axes = eigh(directions @ directions.T)
    whiten = (axes / np.sqrt(sizes)) @ axes.T
    gram = directions @ images.T
    _, turns = eigh(whiten @ ((gram + gram.T) / 2) @ whiten)
    turn = turns.T[::-1] @ whiten
    lengths = np.linalg.norm(images, axis=1)
    one = gamma(len(directions) + OPERATIONS)
    # Directions and images are rounded when they are rotated; the error of a direction is multiplied by M.
    rounded = one * np.sqrt(len(directions)) * float(lengths.max(initial=0))
    sums, scores = np.abs(turn) @ (sums + one * lengths) + rounded, np.abs(turn) @ scores
    if in_place:
        _rotate(turn, directions)
        _rotate(turn, images)
        return KrylovSpace(directions, images, sums, scores)
    return KrylovSpace(turn @ directions, turn @ images, sums, scores)


def _rotate(turn: np.ndarray, block: np.ndarray) -> None:
    """Multiply a block (b, d) by a matrix (b, b) in place, some features at a time."""
    for begin in range(0, block.shape[1], FEATURES):
        block[:, begin : begin + FEATURES] = turn @ block[:, begin : begin + FEATURES]


def extended(space: KrylovSpace, *further: np.ndarray) -> KrylovSpace:
    """Return the space with further directions (m, d), which must be orthonormal to it, images and errors."""
    joined = (np.concatenate(pair) for pair in zip(space, further, strict=True))
    return krylov_space(*joined, in_place=True)


def residuals(space: KrylovSpace, count: int) -> np.ndarray:
    """Return the parts of the first images outside the space, shape (count, d)."""
    images = space.images[:count]
    return images - (images @ space.directions.T) @ space.directions


def fresh_directions(space: KrylovSpace, count: int) -> np.ndarray:
    """Return orthonormal directions (m, d) of the residuals of the first players, m at most `count`.

    Residuals below the rounding of their images are left out. If no more than `count` directions are missing to all
    features, these are returned: the space is complete then, and nothing is left outside.
    """
    if 0 < space.directions.shape[1] - len(space.directions) <= count:
        return _missing_directions(space.directions)
    rest = residuals(space, count)
    lengths = np.linalg.norm(rest, axis=1)
    active = lengths > space.floor[:count]
    block = rest[active] / lengths[active, None]
    if not len(block):
        return block
    for _ in range(2):
        block = block - (block @ space.directions.T) @ space.directions
        sizes, axes = eigh(block @ block.T)
        kept = sizes > FRESH
        block = (axes[:, kept] / np.sqrt(sizes[kept])).T @ block
    return block


def _missing_directions(directions: np.ndarray) -> np.ndarray:
    """Return orthonormal directions (d - b, d) of all that orthonormal ones (b, d) do not span."""
    b, d = directions.shape
    block = np.random.default_rng(b).standard_normal((d - b, d))
    for _ in range(3):
        block = block - (block @ directions.T) @ directions
        block = np.linalg.qr(block.T)[0].T
    return block


def truncated(space: KrylovSpace, keep: np.ndarray, count: int) -> KrylovSpace:
    """Return the space of its first `count` eigenvectors and of directions (m, d) within it that must stay."""
    inside = keep @ space.directions.T
    rest = inside.copy()
    rest[:, :count] = 0
    sizes, axes = eigh(rest @ rest.T)
    others = (axes[:, sizes > 1e-14] / np.sqrt(sizes[sizes > 1e-14])).T @ rest
    turn = np.concatenate([np.eye(len(space.directions))[:count], others])
    sums, scores = (np.abs(turn) @ part for part in (space.sums, space.scores))
    return krylov_space(turn @ space.directions, turn @ space.images, sums, scores)
