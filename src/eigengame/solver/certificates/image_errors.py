r"""Rounding errors of images, split by the directions in which they point.

The error of a computed $Mv_i$ has two parts (`Rounding.parts`). That of the sums is bounded in norm. That of the
scores reaches the image through the rows, so along a unit vector $w$ it is at most a multiple of
$\sqrt{w^\top Mw}$: it is small along components of small variance, and outside the players.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigengame.solver.certificates.bounds import Block, angle_bounds


@dataclass(frozen=True)
class ImageErrors:
    """Errors of images, split by where they point.

    Attributes
    ----------
    inside : array of shape (K, K)
        Bounds on the errors of the inner products of players and images, symmetric.
    outside : array of shape (K,)
        Bounds on the errors of the images outside the players.
    norm : float
        Bound on the norm of the matrix of the errors of the inner products.
    """

    inside: np.ndarray
    outside: np.ndarray
    norm: float

    @classmethod
    def of(
        cls, values: np.ndarray, floor: np.ndarray, scores: np.ndarray, level: float | None
    ) -> ImageErrors:
        """Return the errors for eigenvalues (K,), both parts of the errors (K,), and the level outside."""
        safe = np.maximum(values, 0)
        whole = floor + scores * math.sqrt(float(safe.max(initial=0)))
        # An eigenvalue is off by at most the error of its image.
        roots = np.sqrt(safe + whole)
        along = floor[:, None] + scores[:, None] * roots[None, :]
        beyond = math.sqrt(max(level, 0.0)) if level is not None else float(roots.max(initial=0))
        inside = (along + along.T) / 2
        norm = min(
            float(np.linalg.norm(inside)), float(np.linalg.norm(floor + scores * roots.max()))
        )
        return cls(inside, floor + scores * min(beyond, float(roots.max())), norm)


def rounding_angles(
    values: np.ndarray, floor: np.ndarray, scores: np.ndarray, k: int, level: float
) -> np.ndarray:
    """Return the bounds that exact eigenvectors would have for images with these errors, shape (k,).

    Parameters
    ----------
    values, floor, scores : arrays of shape (K,)
        Eigenvalues, and bounds on both parts of the errors of the images (see `certificate`).
    k : int
        Number of components.
    level : float
        Bound on the largest eigenvalue outside the players.
    """
    errors = ImageErrors.of(values, floor, scores, level)
    shift = np.full(values.size, errors.norm)
    return angle_bounds(Block(values, errors.inside, shift, errors.outside, level), k)
