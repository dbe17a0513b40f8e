r"""Eigenvectors of the largest eigenvalues of a symmetric product, by block Lanczos without restarts.

A product with a block of vectors takes half the time of as many products with one vector, and orthogonalisation
against the whole basis is a matrix product. So this is faster than ARPACK, as long as the basis fits into memory.

In exact arithmetic a product has no part in the basis $Q$ but in its last two blocks. These are subtracted first,
then what rounding has left of the whole basis, as often as that is not small. The coefficients of both make up
$H = QAQ^\top$, so Rayleigh-Ritz values and vectors are correct whatever the new directions are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from eigengame._system import interrupts
from eigengame.linalg.long_columns import combined, inner_products, thin_qr, without
from eigengame.solver.planning.lanczos_basis import BLOCK, largest_basis

FIRST, GROWTH = 2.5, 1.1
"""Size of the basis, as a multiple of the number of eigenvectors, where convergence is first checked; and the ratio
of the sizes of two checks."""

ROUNDING = 1024 * np.finfo(np.float64).eps
"""Residual, as a share of the largest eigenvalue, that counts as rounding."""

DEPENDENT = 1e-13
"""Length of a new direction, as a share of the products, below which nothing but rounding is left of it."""

SMALL = 0.1
"""Part of a new direction in the basis that is small: once it is subtracted, what is left of it is rounding."""

Product = Callable[[np.ndarray], np.ndarray]


class Basis(NamedTuple):
    r"""An orthonormal basis of a Krylov space of a symmetric $A$.

    Attributes
    ----------
    vectors : array of shape (m, size)
        $Q$.
    projected : array of shape (m, m)
        $QAQ^\top$, of which the upper half is set.
    coupling : array of shape (b, b)
        Coefficients of the new directions in the products of the last block.
    following : array of shape (size, b)
        The new directions, orthonormal columns.
    scale : float
        Largest number among the products.
    """

    vectors: np.ndarray
    projected: np.ndarray
    coupling: np.ndarray
    following: np.ndarray
    scale: float


def largest_by_blocks(
    product: Product, size: int, count: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues (count,) and their eigenvectors as rows (count, size), the largest first.

    None if residuals do not become rounding within the largest basis.

    Parameters
    ----------
    product : callable
        From vectors (size, m) to their products (size, m).
    size, count : int
        Length of the vectors, and number of eigenvectors, fewer than that.
    seed : int
        Seed of the first block.
    """
    most, check = largest_basis(size, count), int(FIRST * count)
    if most < check:
        return None
    start = np.random.default_rng(seed).standard_normal((size, BLOCK))
    for basis in growing_basis(product, start, most, seed):
        m, scale = len(basis.vectors), basis.scale
        if m < check:
            continue
        values, turn = eigh(basis.projected, lower=False, subset_by_index=(m - count, m - 1))
        values, turn = values[::-1], turn[:, ::-1]
        # In units of the products, whose squares may be beyond the range of numbers.
        residuals = np.linalg.norm((basis.coupling / scale) @ turn[-BLOCK:], axis=0)
        if residuals.max() <= ROUNDING * abs(values[0] / scale):
            return values, turn.T @ basis.vectors
        check = int(GROWTH * m)
    return None


def growing_basis(product: Product, start: np.ndarray, most: int, seed: int = 0) -> Iterator[Basis]:
    """Yield the basis after each product, from a start (size, b) to `most` vectors, while products are finite."""
    rng = np.random.default_rng([seed, 1])  # for directions that are replaced
    size, b = start.shape
    basis, projected = np.empty((most, size)), np.zeros((most, most))
    scale = float(np.finfo(float).tiny)
    basis[:b] = thin_qr(start)[0].T
    for m in range(b, most + 1, b):
        known, last = basis[:m], slice(m - b, m)
        interrupts.check()
        rest = product(np.ascontiguousarray(known[last].T)).T
        if not np.isfinite(rest).all():
            return
        projected[:m, last], following, coupling, scale = _following(known, rest, scale, rng)
        yield Basis(known, projected[:m, :m], coupling, following, scale)
        if m < most:
            basis[m : m + b] = following.T


def _following(
    known: np.ndarray, rest: np.ndarray, scale: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the part of products (b, size) in a basis (m, size), and the directions of the others.

    In all: coefficients (m, b), orthonormal columns (size, b), their coefficients (b, b), and the scale.
    """
    m, b = len(known), len(rest)
    near, along = slice(max(m - 2 * b, 0), m), np.zeros((m, b))
    along[near] = inner_products(known[near], rest.T)
    scale = max(scale, float(np.abs(along).max()))
    following, coupling = _directions(without(rest.T, known[near], along[near]), scale, rng)
    for _ in range(3):
        again = inner_products(known, following)
        small = bool(np.linalg.norm(again) < SMALL)
        following, corner = _orthonormal(without(following, known, again), nearly=small)
        along, coupling = along + again @ coupling, corner @ coupling
        if small:
            break
    return along, following, coupling, scale


def _orthonormal(columns: np.ndarray, *, nearly: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal columns (size, b) of the same span, and the coefficients (b, b).

    If they are nearly orthonormal already, the Cholesky factor of their inner products is as accurate, and faster.
    """
    if not nearly:
        return thin_qr(columns)
    corner = np.linalg.cholesky(inner_products(columns.T, columns)).T
    return combined(columns, np.linalg.inv(corner)), corner


def _directions(
    columns: np.ndarray, scale: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal columns (size, b) that span the given ones, and the coefficients (b, b) of these.

    Directions of which nothing but rounding is left, for products of this scale, are replaced by random ones, with
    coefficients 0.
    """
    factor, corner = thin_qr(columns)
    if (np.abs(np.diag(corner)) <= DEPENDENT * scale).any():
        # A column that depends on those before it has a direction of rounding, along which later columns may be
        # long. Singular vectors of no length are those along which all columns are short.
        axes, sizes, along = np.linalg.svd(corner)
        factor, corner = factor @ axes, sizes[:, None] * along
        dependent = sizes <= DEPENDENT * scale
        draws = rng.standard_normal((len(factor), int(dependent.sum())))
        factor[:, dependent] = draws / np.linalg.norm(draws, axis=0)
        corner[dependent] = 0
    return factor, corner
