"""Ritz values and vectors of a Krylov space, and the problems that such spaces solve."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from eigengame.solver.certificates.probes import draw_probes
from eigengame.solver.certificates.rounding import Summed
from eigengame.solver.lanczos.block_lanczos import Basis, Product
from eigengame.solver.rows.moments import Moments

PROBES = 16
"""Number of probes of the stream if `probes` is "auto". Each costs as much as a vector of the basis."""


def first_block(seed: int, block: int, size: int) -> np.ndarray:
    """Return the Gaussian start of a Krylov space, shape (size, block)."""
    return np.ascontiguousarray(draw_probes(seed + 1, block, size).T)


class Ritz(NamedTuple):
    r"""Ritz pairs of a Krylov space with basis $Q$: $Av_i = \theta_iv_i + R_i$ for $v_i = t_i^\top Q$.

    Attributes
    ----------
    basis : Basis
    values : array of shape (m,)
        $\theta$, largest first.
    turn : array of shape (m, m)
        $t_i$ as columns.
    residuals : array of shape (m, b)
        $R$ in terms of the directions that follow the basis.
    """

    basis: Basis
    values: np.ndarray
    turn: np.ndarray
    residuals: np.ndarray

    @classmethod
    def of(cls, basis: Basis) -> Ritz:
        """Solve the small eigenproblem of a basis."""
        values, turn = eigh(basis.projected, lower=False)
        values, turn = values[::-1], turn[:, ::-1]
        return cls(basis, values, turn, (basis.coupling @ turn[-len(basis.coupling) :]).T)

    @property
    def largest(self) -> float:
        """Bound on the largest eigenvalue that belongs to a Ritz value."""
        return float(self.values[0] + np.linalg.norm(self.residuals[0]))

    def vectors(self, begin: int, end: int) -> np.ndarray:
        """Return the Ritz vectors from `begin` to `end`, as rows."""
        found: np.ndarray = self.turn[:, begin:end].T @ self.basis.vectors
        return found


def add_multiples(images: np.ndarray, values: np.ndarray, players: np.ndarray) -> None:
    """Add players (e, d), each times its value, to images (e, d), one by one: temporary arrays stay small."""
    for image, value, player in zip(images, values, players, strict=True):
        image += value * player


class Measured(NamedTuple):
    """Players (e, d), their products with M (e, d), and bounds (e,) on the errors of the products."""

    players: np.ndarray
    images: np.ndarray
    floor: np.ndarray


class KrylovProblem(Protocol):
    """All rows of a fit, as the symmetric matrix $A$ of a Krylov space with the eigenvalues of M.

    Attributes
    ----------
    size : int
        Rows and columns of $A$.
    block : int
        Vectors that are multiplied at a time.
    most_products : int
        Largest number of products with a block.
    accuracy : float
        Angle to which components are converged even if a larger one is tolerated.
    longest_growth : float
        Largest ratio of the sizes of a basis at two checks of its convergence.
    moments : Moments
        Of each feature.
    seen : int
        Rows with a weight above 0.
    summed : Summed
        How the products of the probes were summed.
    """

    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def block(self) -> int: ...  # noqa: D102
    @property
    def most_products(self) -> int: ...  # noqa: D102
    @property
    def accuracy(self) -> float: ...  # noqa: D102
    @property
    def longest_growth(self) -> float: ...  # noqa: D102
    @property
    def moments(self) -> Moments: ...  # noqa: D102
    @property
    def seen(self) -> int: ...  # noqa: D102
    @property
    def summed(self) -> Summed: ...  # noqa: D102

    def product(self) -> Product:
        """Return the product of vectors (size, b) with $A$."""

    def errors(self, ritz: Ritz) -> np.ndarray:
        r"""Return bounds on $\|Av_i - \theta_iv_i - R_i\|$, shape (m,)."""

    def measured(self, ritz: Ritz, errors: np.ndarray, count: int) -> Measured:
        """Return the players of the first `count` Ritz vectors with their products."""

    def converges_slowly(self, ritz: Ritz, k: int) -> bool:
        """Return whether another route is likely to take less time, after half of the products."""

    def knows_rest(self, values: np.ndarray, errors: np.ndarray, others: int) -> bool:
        """Return whether the variance that components with these eigenvalues (k,) leave is known."""

    def players(self, vectors: np.ndarray) -> np.ndarray:
        """Return unit directions (e, d) of vectors (e, size)."""

    def images(self, draws: np.ndarray) -> Any:
        """Return the products of the probes of a stream (r, d) with M."""
