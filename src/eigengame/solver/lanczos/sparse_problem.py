"""Sparse rows in memory as a problem of Lanczos' method, with products in float64.

They are those of the inner products of the rows or of the features, whichever are fewer; both have the same
eigenvalues.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigengame._system.blas_threads import all_blas_threads
from eigengame.solver.certificates.rounding import OPERATIONS, Summed, gamma
from eigengame.solver.lanczos.block_lanczos import Product
from eigengame.solver.lanczos.centred_rows import CentredRows, centred_rows, largest_by_lanczos
from eigengame.solver.lanczos.ritz import Measured, Ritz, add_multiples
from eigengame.solver.passes.float64_products import orthonormal
from eigengame.solver.passes.held_rows import HeldRows
from eigengame.solver.passes.passes import Passes
from eigengame.solver.planning.lanczos_basis import BLOCK
from eigengame.solver.planning.plan import Plan
from eigengame.solver.rows.moments import Moments
from eigengame.solver.rows.row_counts import refuse_unless_counted


@dataclass(frozen=True)
class SparseProblem:
    """All sparse rows of a fit.

    Attributes
    ----------
    rows : CentredRows
    moments : Moments
        Of each feature.
    seen : int
        Rows with a weight above 0.
    """

    rows: CentredRows
    moments: Moments
    seen: int

    @property
    def size(self) -> int:
        """Number of rows or features, whichever is smaller."""
        return int(min(self.rows.values.shape))

    @property
    def block(self) -> int:
        """Vectors that are multiplied at a time."""
        return BLOCK

    @property
    def most_products(self) -> int:
        """Largest number of products with a block: as many as there are vectors."""
        return self.size

    @property
    def accuracy(self) -> float:
        """Angle to which components are converged: that takes few more products than a certificate."""
        return 1e-4

    @property
    def longest_growth(self) -> float:
        """Largest ratio of the sizes of a basis at two checks: products cost less than checks."""
        return 1.25

    @property
    def summed(self) -> Summed:
        """How the products of the probes are summed: over all rows at once, by centred scores."""
        return Summed(self.seen)

    def converges_slowly(self, ritz: Ritz, k: int) -> bool:
        """Return False: products cost little."""
        return False

    def knows_rest(self, values: np.ndarray, errors: np.ndarray, others: int) -> bool:
        """Return True: products in float64 are accurate enough."""
        return True

    @property
    def by_rows(self) -> bool:
        """Whether rows are fewer than features, so that their inner products are the smaller problem."""
        n, d = self.rows.values.shape
        return bool(n < d)

    def product(self) -> Product:
        """Return the product of vectors (size, b) with the inner products of rows or features."""
        rows = self.rows
        if self.by_rows:
            return lambda vectors: rows.scores(rows.directions(np.ascontiguousarray(vectors)))
        return lambda vectors: rows.directions(rows.scores(vectors.T)).T

    def errors(self, ritz: Ritz) -> np.ndarray:
        """Return bounds on the errors of the Ritz pairs, shape (m,)."""
        m, largest = len(ritz.values), ritz.largest
        # Each vector is multiplied, orthogonalised by sums of m and of `size` terms, and factorised.
        error = self.product_error(largest) + gamma(16 * (m + self.size)) * largest
        return np.full(m, math.sqrt(m) * error)

    def measured(self, ritz: Ritz, errors: np.ndarray, count: int) -> Measured:
        r"""Return the players of the first Ritz vectors with their products.

        With rows $Z$ and $A = ZZ^\top$, a player is $u_iZ/s_i$ with $s_i = \|u_iZ\|$, and its product with M is
        $(\theta_iu_i + R_i)Z/s_i$: only the directions of the residuals are multiplied. Errors of $Au_i$ grow by
        $\sqrt{\theta_1}/s_i$, and those of the player by $\theta_1$.
        """
        vectors, values = ritz.vectors(0, count), ritz.values[:count]
        apart, error = ritz.residuals[:count], errors[:count]
        if not self.by_rows:
            m = len(ritz.values)
            rounding = math.sqrt(m) * gamma(m + OPERATIONS) * ritz.largest
            images = apart @ ritz.basis.following.T
            add_multiples(images, values, vectors)
            return Measured(vectors, images, error + rounding)
        players, lengths = self._unit(vectors)
        if not lengths.min() > 0:
            return Measured(players, players, np.full(count, math.inf))
        images = (apart / lengths[:, None]) @ self.rows.directions(ritz.basis.following)
        add_multiples(images, values, players)
        largest, rows_error = ritz.largest, self.rows.rows_error()
        floor = math.sqrt(largest) * error + largest * rows_error
        floor += (values + math.sqrt(BLOCK) * np.linalg.norm(apart, axis=1)) * rows_error
        return Measured(players, images, floor / lengths + gamma(BLOCK + OPERATIONS) * largest)

    def players(self, vectors: np.ndarray) -> np.ndarray:
        """Return unit directions (e, d) of eigenvectors (e, size) of the smaller problem."""
        if not self.by_rows:
            return vectors
        return self._unit(vectors)[0]

    def _unit(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return unit directions (e, d) of vectors (e, n) in row-major order, and their lengths (e,) before."""
        found = self.rows.directions_by_row(np.ascontiguousarray(vectors.T))
        lengths = np.array([np.linalg.norm(one) for one in found])
        found /= np.where(lengths > 0, lengths, 1)[:, None]
        return found, lengths

    def images(self, draws: np.ndarray) -> np.ndarray:
        """Return the products of directions (r, d) with M."""
        return self.rows.directions(self.rows.scores(draws))

    def product_error(self, largest: float) -> float:
        """Return a bound on the error of a product with a unit vector, if M has this largest eigenvalue."""
        error = self.rows.rows_error()
        return 2 * math.sqrt(largest) * error + error**2


def sparse_problem(plan: Plan, passes: Passes) -> SparseProblem:
    """Read all rows once."""
    held = HeldRows.read(passes)
    refuse_unless_counted(passes.source.name, held.rows, held.weight, 2)
    rows, moments = centred_rows(held, center=plan.options.center)
    passes.refuse_unless_finite(moments.scatter)
    return SparseProblem(rows, moments, held.rows)


def largest_of(
    problem: SparseProblem, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues of M and their eigenvectors, as orthonormal rows; None if not converged."""
    if count >= problem.size:
        return None
    found = largest_by_lanczos(problem.product(), problem.size, count, seed + 1)
    if found is None:
        return None
    values, vectors = found
    players = problem.players(vectors)
    with all_blas_threads():
        # Directions of no variance are rounding, which `orthonormal` replaces by others.
        return np.maximum(values, 0), orthonormal(players)
