r"""True components in float64 with a bound on their error: about a hundred times faster than 50 digits.

Let $S$ be the exact scatter matrix. It is computed in float64 as $C$ from rows about a vector $m$ close to their
mean, multiplied by the roots of their weights. With $u = 2^{-53}$, $\gamma_m = mu/(1 - mu)$ and
$T = \sum_r w_r\|x_r - m\|^2$:

* Each entry of a row is off by a factor of $1 + \epsilon$ with $|\epsilon| \le \gamma_4$: difference, weight, root
  and product. That moves $C$ by at most $2\gamma_5T$. Sums of products with at most $c$ additions in a row add
  $\gamma_cT$.
* The scatter about the mean is smaller by $bb^\top/W$ with $b = \sum_r w_r(x_r - m)$ and $W$ the total weight.
* For computed eigenvectors $V$ (columns) and eigenvalues $\Lambda$, the residual $CV - V\Lambda$ and the defect
  $V^\top V - I$ are measured, with the rounding of these two computations added.

So $S = Q\Lambda Q^\top + E$ with an orthonormal $Q$ close to $V$, and $\|E\|$ is bounded. The span of some
neighbouring columns of $Q$ is off by an angle of at most $\arcsin(\|E\|/(g - \|E\|))$, where $g$ is the distance of
their values to all others (Weyl; Davis and Kahan).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

UNIT = 2.0**-53
"""Unit roundoff of float64."""


@dataclass(frozen=True)
class QuickTruth:
    """Eigenvalues and eigenvectors of a scatter matrix in float64, with bounds on their errors.

    Attributes
    ----------
    values : array of shape (d,)
        Largest first, in an arbitrary unit.
    vectors : array of shape (d, d)
        Row i belongs to value i.
    left : float
        Bound on the norm of the difference from the exact matrix, in the same unit.
    defect : float
        Bound on the distance of the vectors from orthonormal ones.
    """

    values: np.ndarray
    vectors: np.ndarray
    left: float
    defect: float

    def gap(self, first: int, last: int) -> float:
        """Return the distance of eigenvalues `first` to `last` from all others."""
        above = self.values[first - 1] - self.values[first] if first > 0 else math.inf
        end = len(self.values) - 1
        below = self.values[last] - self.values[last + 1] if last < end else math.inf
        return float(min(above, below))

    def error(self, first: int, last: int) -> float:
        """Return a bound on the error of `angle` for vectors `first` to `last`; pi/2 if there is none."""
        room = self.gap(first, last) - self.left
        if not room > self.left:
            return math.pi / 2
        d = len(self.values)
        return math.asin(self.left / room) + 2 * self.defect + 8 * d * gamma(d + 8)

    def angle(self, vectors: np.ndarray, first: int, last: int) -> float:
        """Return the largest angle between the span of some vectors and that of true vectors `first` to `last`.

        It is NaN for vectors that are far from orthonormal, which are left to the other method.

        Parameters
        ----------
        vectors : array of shape (m, d)
            At most ``last - first + 1`` stored components.
        first, last : int
            The first and the last index of the group.
        """
        basis, given = self.vectors[first : last + 1], vectors.astype(np.float64)
        if not np.abs(given @ given.T - np.eye(len(given))).max() < 0.01:
            return math.nan
        given = np.linalg.qr(given.T)[0].T
        outside = given - (given @ basis.T) @ basis
        return math.asin(min(float(np.linalg.norm(outside, 2)), 1.0))


def quick_truth_of(
    rows: np.ndarray, weights: np.ndarray | None = None, *, center: bool = True
) -> QuickTruth | None:
    """Return the components of the rows in float64, or None if they are not worth computing.

    Parameters
    ----------
    rows : array of shape (n, d)
        Finite float32 or float64 values.
    weights : array of shape (n,), optional
        Floats or Python integers of at least 0: how often each row counts.
    center : bool
        Whether the scatter is about the weighted mean, or about zero.
    """
    x, w = rows.astype(np.float64), _plain(weights, len(rows))
    with np.errstate(all="ignore"):
        mean = (w / w.sum()) @ x if center else np.zeros(x.shape[1])
        z = x - mean
        sizes = np.abs(z[z != 0])
    # Where squares of small numbers would be zero, the bounds below do not hold.
    if not sizes.size or not 1e-150 * sizes.max() < sizes.min() <= sizes.max() < math.inf:
        return None
    z = np.ldexp(z, -math.frexp(sizes.max())[1])  # exact
    y = np.sqrt(w)[:, None] * z
    matrix, chain = _sum_of_products(y)
    trace = float(np.sum(y**2)) * (1 + gamma(y.size))
    if not trace > 1e-200:
        return None
    left = (2 * gamma(5) + gamma(chain)) * trace
    if center:
        b = float(np.linalg.norm(w @ z)) + gamma(len(z) + 8) * math.sqrt(w.sum() * trace)
        left += 1.001 * b**2 / w.sum()
    return _decomposed(matrix, left)


def gamma(length: int) -> float:
    r"""Return $\gamma_m$, the relative error of a sum of `length` products."""
    return length * UNIT / (1 - length * UNIT)


def _plain(weights: np.ndarray | None, n: int) -> np.ndarray:
    """Return weights as float64 with a largest of about 1, each rounded once."""
    if weights is None:
        return np.ones(n)
    largest = max(weights)
    # Python integers are divided exactly, then rounded.
    return np.array([float(one / largest) for one in weights])


def _sum_of_products(y: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the symmetric matrix y' y, and the largest number of additions in a row, by blocks of rows."""
    n, d = y.shape
    size = max(math.isqrt(n), 1)
    blocks = -(-n // size)
    padded = np.zeros((blocks * size, d))
    padded[:n] = y
    cut = padded.reshape(blocks, size, d)
    matrix = np.matmul(cut.transpose(0, 2, 1), cut).sum(axis=0)
    return (matrix + matrix.T) / 2, size + blocks + 1


def _decomposed(matrix: np.ndarray, left: float) -> QuickTruth:
    """Return the eigenvectors of a matrix that is off by at most `left` in norm."""
    d = len(matrix)
    values, columns = np.linalg.eigh(matrix)
    size = float(np.linalg.norm(matrix))
    rounding = gamma(d + 4) * d
    defect = float(np.linalg.norm(columns.T @ columns - np.eye(d))) + 2 * rounding
    residual = float(np.linalg.norm(matrix @ columns - columns * values)) + 3 * rounding * size
    left += residual * (1 + defect) + 3 * defect * size
    return QuickTruth(values[::-1], columns.T[::-1], left, defect)
