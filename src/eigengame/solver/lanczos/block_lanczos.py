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
from eigengame.linalg.long_columns import (
    combine,
    factorise_in_place,
    inner_products,
    subtract_shares,
)
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
"""From vectors (size, b), a view of rows, to their products (size, b), a new array that may be changed."""


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
        if m < min(check, most):
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
    first = start.copy()
    factorise_in_place(first)
    basis[:b] = first.T
    for m in range(b, most + 1, b):
        known, last = basis[:m], slice(m - b, m)
        interrupts.check()
        columns = product(known[last].T)
        if not np.isfinite(columns).all():
            return
        projected[:m, last], coupling, scale = _make_orthonormal(columns, known, scale, rng)
        yield Basis(known, projected[:m, :m], coupling, columns, scale)
        if m < most:
            basis[m : m + b] = columns.T


def _make_orthonormal(
    columns: np.ndarray, known: np.ndarray, scale: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """Replace products (size, b) by the directions that they add to a basis (m, size).

    Return the coefficients (m, b) of the basis, those of the directions (b, b), and the scale of all products.
    """
    m, b = len(known), columns.shape[1]
    near, along = slice(max(m - 2 * b, 0), m), np.zeros((m, b))
    along[near] = inner_products(known[near], columns)
    scale = max(scale, float(np.abs(along).max()))
    subtract_shares(columns, known[near], along[near])
    coupling = _make_directions(columns, scale, rng)
    for _ in range(3):
        again = inner_products(known, columns)
        small = bool(np.linalg.norm(again) < SMALL)
        subtract_shares(columns, known, again)
        corner = _restore_orthonormal(columns) if small else factorise_in_place(columns)
        along, coupling = along + again @ coupling, corner @ coupling
        if small:
            break
    return along, coupling, scale


def _restore_orthonormal(columns: np.ndarray) -> np.ndarray:
    """Make columns (size, b) orthonormal that nearly are, and return the coefficients (b, b) of the given ones.

    The Cholesky factor of their inner products is as accurate as a QR factorisation then, and faster.
    """
    corner: np.ndarray = np.linalg.cholesky(inner_products(columns.T, columns)).T
    combine(columns, np.linalg.inv(corner))
    return corner


def _make_directions(columns: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Replace columns (size, b) by orthonormal ones that span them, and return the coefficients (b, b).

    Directions of which nothing but rounding is left, for products of this scale, are replaced by random ones, with
    coefficients 0.
    """
    corner = factorise_in_place(columns)
    if (np.abs(np.diag(corner)) <= DEPENDENT * scale).any():
        # A column that depends on those before it has a direction of rounding, along which later columns may be
        # long. Singular vectors of no length are those along which all columns are short.
        axes, sizes, along = np.linalg.svd(corner)
        combine(columns, axes)
        corner = sizes[:, None] * along
        dependent = sizes <= DEPENDENT * scale
        draws = rng.standard_normal((len(columns), int(dependent.sum())))
        columns[:, dependent] = draws / np.linalg.norm(draws, axis=0)
        corner[dependent] = 0
    return corner
