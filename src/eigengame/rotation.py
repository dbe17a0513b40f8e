r"""Varimax: rotation of components towards few large loadings each (Kaiser, 1958).

Loadings are components times the square roots of their variances, $L = V\,\mathrm{diag}(\sqrt{\lambda})$, shape
(d, k) with features as rows. Varimax maximises the sum over components of the variance of the squared loadings,

$$\sum_j \Big[\frac1d \sum_i (LR)_{ij}^4 - \Big(\frac1d \sum_i (LR)_{ij}^2\Big)^2\Big],$$

over orthogonal matrices $R$. With Kaiser's normalisation each feature is divided by the length of its loadings
during the rotation, so that features with little variance count as much as the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame import _check


@dataclass(frozen=True)
class Rotation:
    """Result of `varimax`.

    Attributes
    ----------
    loadings : array of shape (k, d)
        Rotated loadings, sorted by `variance`; each has its largest entry positive.
    matrix : array of shape (k, k)
        Orthogonal matrix R: rotated loadings are ``matrix.T @ given``.
    variance : array of shape (k,)
        Sum of the squared loadings of each rotated component. Its total is that of the given loadings.
    iterations : int
    converged : bool
        Whether the criterion stopped increasing within `max_iterations`.
    """

    loadings: np.ndarray
    matrix: np.ndarray
    variance: np.ndarray
    iterations: int
    converged: bool


def varimax(
    loadings: Any, *, normalise: bool = True, tol: float = 1e-12, max_iterations: int = 1000
) -> Rotation:
    """Rotate loadings by the varimax criterion.

    Parameters
    ----------
    loadings : array of shape (k, d)
        Components times the square roots of their variances:
        ``pca.components_ * np.sqrt(pca.explained_variance_)[:, None]``. Real and finite.
    normalise : bool
        Whether to use Kaiser's normalisation. Features without loadings are not changed.
    tol : float
        Stop when the criterion increases by less than this fraction.
    max_iterations : int

    Returns
    -------
    Rotation

    Examples
    --------
    >>> import numpy as np
    >>> mixed = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, -1.0, -1.0]]) / np.sqrt(2)
    >>> np.abs(varimax(mixed).loadings).round(6)
    array([[1., 1., 0., 0.],
           [0., 0., 1., 1.]])
    """
    given = np.asarray(loadings)
    if given.ndim != 2 or 0 in given.shape or given.dtype.kind not in "fiu":
        raise ValueError(
            f"loadings has dtype {given.dtype} and shape {given.shape}: give real numbers of shape (k, d)."
        )
    given = given.astype(np.float64)
    _check.finite("loadings", given)
    _check.positive("tol", tol)
    _check.positive("max_iterations", max_iterations)
    k, rows = len(given), given.T
    if normalise:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(length > 0, length, 1)
    # The criterion has degree 4: without a unit it would overflow or vanish for large or small numbers.
    size = float(np.abs(rows).max(initial=0.0))
    rows = rows / (size or 1.0)
    matrix, value, iterations, converged = np.eye(k), _criterion(rows), 0, k == 1
    while not converged and iterations < max_iterations:
        iterations += 1
        turned = rows @ matrix
        gradient = rows.T @ (turned**3 - turned * (turned**2).mean(axis=0))
        left, _, right = np.linalg.svd(gradient)
        matrix = left @ right
        before, value = value, _criterion(rows @ matrix)
        converged = bool(value - before <= tol * abs(value))
    rotated = matrix.T @ given
    variance = (rotated**2).sum(axis=1)
    order = np.argsort(-variance, kind="stable")
    largest = np.take_along_axis(rotated, np.abs(rotated).argmax(axis=1)[:, None], axis=1)[:, 0]
    signs = np.where(largest < 0, -1.0, 1.0)
    matrix = (matrix * signs)[:, order]
    return Rotation(matrix.T @ given, matrix, variance[order], iterations, converged)


def _criterion(rows: np.ndarray) -> float:
    """Return the sum over columns of the variance of the squared entries of loadings (d, k)."""
    return float((rows**2).var(axis=0).sum())
