r"""Varimax: rotation of components towards few large loadings each (Kaiser, 1958).

Loadings are components times the square roots of their variances, $L = V\,\mathrm{diag}(\sqrt{\lambda})$, shape
(d, k) with features as rows. Varimax maximises the sum over components of the variance of the squared loadings,

$$\sum_j \Big[\frac1d \sum_i (LR)_{ij}^4 - \Big(\frac1d \sum_i (LR)_{ij}^2\Big)^2\Big],$$

over orthogonal matrices $R$. With Kaiser's normalisation each feature is divided by the length of its loadings
during the rotation, so that features with little variance count as much as the others.

The iteration takes $R$ from the singular vectors of the gradient. Such a step turns all components at once, but it
can decrease the criterion, it can stay at a stationary point that is no maximum, and it can be slow. Where it gains
little, pairs of components are turned by the best angles of their planes, which have a closed form (Kaiser, 1958).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame import _check

SLOW = 1e-3
"""Increase of the criterion by a step, as a fraction, up to which pairs of components are turned too."""


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
        Whether the iteration ended within `max_iterations`. Then no rotation of two of the components
        increases the criterion by more than `tol` of it, or by more than rounding errors. The maximum
        found is a local one.
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
        Stop when no rotation of two components increases the criterion by more than this fraction.
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
    # The criterion is at most this, whatever the rotation: it sets the rounding errors of all increases.
    bound = float(((rows**2).sum(axis=1) ** 2).mean())
    rounding = 16 * float(np.finfo(np.float64).eps) * bound
    matrix, turned, iterations, converged = np.eye(k), rows, 0, k == 1
    while not converged and iterations < max_iterations:
        iterations += 1
        value = _criterion(turned)
        enough = max(tol * value, rounding)
        left, _, right = np.linalg.svd(rows.T @ (turned**3 - turned * (turned**2).mean(axis=0)))
        step = left @ right
        stepped = rows @ step
        increase = _criterion(stepped) - value
        if increase > 0:
            matrix, turned = step, stepped
        if increase <= max(SLOW * value, enough):
            planes = _plane_rotations(turned, enough)
            converged = planes is None and increase <= enough
            if planes is not None:
                matrix = matrix @ planes
                turned = rows @ matrix
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


def _plane_rotations(rows: np.ndarray, enough: float) -> np.ndarray | None:
    r"""Return a matrix that turns disjoint pairs of columns by their best angles, None if no pair gains.

    For columns $x, y$ with $u = x^2 - y^2$ and $v = 2xy$, both centred, a rotation by $\phi$ changes the criterion
    to a constant plus $(a \cos 4\phi + b \sin 4\phi) / 4$, where $a$ is the mean of $u^2 - v^2$ and $b$ of $2uv$.
    Pairs are taken in order of their increase, down to `enough`. A column is in one pair at most, so that their
    increases add up.
    """
    d, k = rows.shape
    squares = rows**2
    centred = squares - squares.mean(axis=0)
    covariance = centred.T @ centred / d
    own = np.diag(covariance)
    products = squares.T @ squares / d - (rows.T @ rows / d) ** 2  # the variance of xy
    skew = (centred * rows).T @ rows / d
    a = own[:, None] + own - 2 * covariance - 4 * products
    b = 4 * (skew - skew.T)
    gain = np.triu((np.hypot(a, b) - a) / 4, 1)
    if not gain.max() > enough:
        return None
    turn = np.eye(k)
    while gain.max() > enough:
        p, q = np.unravel_index(gain.argmax(), gain.shape)
        angle = np.arctan2(b[p, q], a[p, q]) / 4
        turn[p, p] = turn[q, q] = np.cos(angle)
        turn[q, p] = np.sin(angle)
        turn[p, q] = -turn[q, p]
        gain[[p, q]] = gain[:, [p, q]] = 0
    return turn
