"""True principal components to about 50 digits, with a bound on their error, and a second computation.

`Truth` comes from Jacobi rotations of the exact scatter matrix in decimal arithmetic. `SecondTruth` is independent
of it: the scatter matrix is summed in another way, eigenvalues are located by the inertia of a shifted matrix
(Sylvester), and eigenvectors come from inverse iteration.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from benchmarks.exact_scatter import exact_scatter, scatter_by_integers

DIGITS = 60
"""Digits of the first computation."""

SMALL = Decimal("1e-54")
"""Off-diagonal entries below which Jacobi rotations stop, for a matrix of trace 1."""

TIED = 1e-40
"""Distances between eigenvalues that count as zero, for a matrix of trace 1."""


@dataclass(frozen=True)
class Truth:
    """Eigenvalues and eigenvectors of a scatter matrix of trace 1.

    Attributes
    ----------
    values : array of shape (d,)
        Decimals, largest first.
    vectors : array of shape (d, d)
        Decimals; row i belongs to value i.
    left : float
        The largest sum of absolute off-diagonal entries in a row after the last rotation.
    """

    values: np.ndarray
    vectors: np.ndarray
    left: float

    def gap(self, first: int, last: int) -> float:
        """Return the distance of eigenvalues `first` to `last` from all others; 0 when they are tied."""
        above = self.values[first - 1] - self.values[first] if first > 0 else Decimal("Infinity")
        end = len(self.values) - 1
        below = self.values[last] - self.values[last + 1] if last < end else Decimal("Infinity")
        gap = float(min(above, below))
        return gap if gap > TIED else 0.0

    def error(self, first: int, last: int) -> float:
        """Return a bound on the angle between the computed and the true span of vectors `first` to `last`."""
        gap = self.gap(first, last)
        return (
            math.pi / 2
            if gap == 0
            else min(2 * (self.left + len(self.values) ** 2 * 10.0**-DIGITS) / gap, math.pi / 2)
        )

    def angle(self, vectors: np.ndarray, first: int, last: int) -> float:
        """Return the largest angle between the span of some vectors and that of true vectors `first` to `last`.

        It is pi/2 if the true span is tied with its neighbours, and so is not defined, and NaN for vectors that
        are not finite.

        Parameters
        ----------
        vectors : array of shape (m, d)
            At most ``last - first + 1`` stored components.
        first, last : int
            The first and the last index of the group.
        """
        if not np.isfinite(vectors).all():
            return math.nan
        if self.gap(first, last) == 0:
            return math.pi / 2
        return span_angle(vectors, self.vectors[first : last + 1])


def truth_of(
    rows: np.ndarray, weights: np.ndarray | None = None, *, center: bool = True
) -> Truth | None:
    """Return the true components of the rows, or None if all rows are equal."""
    return eigen(exact_scatter(rows, weights, center=center))


def eigen(scatter: np.ndarray) -> Truth | None:
    """Return the eigenvalues and eigenvectors of an exact scatter matrix, or None if it is zero."""
    with decimal.localcontext(prec=DIGITS):
        a = _trace_one(scatter)
        if a is None:
            return None
        # Starting from the eigenvectors in float64, few rotations are needed.
        start = np.linalg.eigh(a.astype(np.float64))[1].T
        vectors = _orthonormal(_decimals(start))
        a = vectors @ a @ vectors.T
        while _sweep(a, vectors):
            pass
        values = np.diag(a).copy()
        left = np.abs(a - np.diag(values)).sum(axis=1).max()
        order = sorted(range(len(values)), key=lambda i: -values[i])
        return Truth(values[order], vectors[order], float(left))


def span_angle(vectors: np.ndarray, basis: np.ndarray) -> float:
    """Return the largest angle of any vector in the span of `vectors` (m, d) to that of `basis` (p, d), m <= p."""
    with decimal.localcontext(prec=DIGITS):
        v = _decimals(vectors.astype(np.float64))
        lengths = np.array([row.dot(row).sqrt() for row in v], dtype=object)
        if not lengths.all():
            return math.pi / 2
        v = v / lengths[:, None]
        outside = (v - (v @ basis.T) @ basis).astype(np.float64)
        overlaps = (v @ v.T).astype(np.float64)
    # The small differences are computed; the remaining problem is well conditioned.
    least = np.linalg.eigvalsh(overlaps)[0]
    if least < 1e-8:  # the vectors are linearly dependent
        return math.pi / 2
    factor = np.linalg.cholesky(overlaps)
    sine = float(np.linalg.norm(np.linalg.solve(factor, outside), 2))
    return math.asin(min(sine, 1.0))


@dataclass
class SecondTruth:
    """A second computation of the same angles: exact integers, inertia, inverse iteration.

    Parameters
    ----------
    rows, weights, center
        As for `truth_of`.
    first : Truth
        Its eigenvalues are used as shifts only; the eigenvalues near them are counted again.
    """

    rows: np.ndarray
    weights: np.ndarray | None
    center: bool
    first: Truth
    _matrix: np.ndarray | None = field(default=None, repr=False)

    def angle(self, vectors: np.ndarray, first: int, last: int) -> float:
        """Return the largest angle between the spans, as `Truth.angle` does."""
        if not np.isfinite(vectors).all():
            return math.nan
        with decimal.localcontext(prec=2 * DIGITS):
            if self._matrix is None:
                scatter = scatter_by_integers(self.rows, self.weights, center=self.center)
                self._matrix = _trace_one(scatter)
            assert self._matrix is not None
            basis = self._span(self._matrix, first, last)
        return math.pi / 2 if basis is None else span_angle(vectors, basis)

    def _span(self, a: np.ndarray, first: int, last: int) -> np.ndarray | None:
        """Return an orthonormal basis of the eigenvectors `first` to `last`, or None if they are tied."""
        margin = Decimal(TIED)
        high, low = self.first.values[first] + margin, self.first.values[last] - margin
        above, not_below = _above(a, high), _above(a, low)
        if (above, not_below) != (first, last + 1):
            if above <= first and not_below >= last + 1:
                return None  # further eigenvalues lie in this range: a tie
            raise ArithmeticError(
                f"eigenvalues {first} to {last}: {above} are above and {not_below} are not below them, so the "
                "first computation is wrong."
            )
        found: list[np.ndarray] = []
        rng = np.random.default_rng(first)
        for i in range(first, last + 1):
            vector = _decimals(rng.standard_normal((1, len(a))))[0]
            shift = self.first.values[i] + margin
            lower, pivots = _ldl(a, shift)
            for _ in range(6):
                vector = _without(_solve(lower, pivots, vector), found)
            found.append(vector)
        return np.array(found, dtype=object)


def _trace_one(scatter: np.ndarray) -> np.ndarray | None:
    """Return integers as decimals with trace 1, or None if all are zero."""
    trace = sum(int(scatter[i, i]) for i in range(len(scatter)))
    if trace == 0:
        return None
    convert = np.frompyfunc(lambda value: Decimal(int(value)) / Decimal(trace), 1, 1)
    return convert(scatter)


def _decimals(values: np.ndarray) -> np.ndarray:
    """Return float64 values as decimals, exactly."""
    return np.frompyfunc(lambda value: Decimal(float(value)), 1, 1)(values)


def _orthonormal(q: np.ndarray) -> np.ndarray:
    """Return the nearest orthonormal rows by Newton-Schulz iteration: errors of 1e-16 square with each step."""
    eye = np.array([[Decimal(int(i == j)) for j in range(len(q))] for i in range(len(q))])
    for _ in range(3):
        q = q + (eye - q @ q.T) @ q / 2
    return q


def _sweep(a: np.ndarray, vectors: np.ndarray) -> bool:
    """Apply one sweep of Jacobi rotations in place, and return whether any was needed."""
    rotated = False
    for p in range(len(a) - 1):
        for q in range(p + 1, len(a)):
            if abs(a[p, q]) <= SMALL:
                continue
            rotated = True
            slope = (a[q, q] - a[p, p]) / (2 * a[p, q])
            root = (slope * slope + 1).sqrt()
            tangent = 1 / (slope + root) if slope >= 0 else 1 / (slope - root)
            c = 1 / (tangent * tangent + 1).sqrt()
            s = tangent * c
            for one in (a, a.T, vectors):
                one[p], one[q] = c * one[p] - s * one[q], s * one[p] + c * one[q]
    return rotated


def _ldl(a: np.ndarray, shift: Decimal) -> tuple[np.ndarray, np.ndarray]:
    """Return L (d, d) and the pivots (d,) of a - shift = L diag(pivots) L', without exchanges."""
    rest, d = a.copy(), len(a)
    rest[np.diag_indices(d)] -= shift
    lower = np.full((d, d), Decimal(0), dtype=object)
    pivots = np.full(d, Decimal(0), dtype=object)
    for j in range(d):
        # A pivot is zero if a leading minor vanishes: replace it by a number below the precision.
        pivots[j] = rest[j, j] if rest[j, j] else Decimal(10) ** (-3 * DIGITS)
        lower[j:, j] = rest[j:, j] / pivots[j]
        rest[j + 1 :, j + 1 :] -= np.outer(lower[j + 1 :, j], rest[j, j + 1 :])
    return lower, pivots


def _above(a: np.ndarray, shift: Decimal) -> int:
    """Return the number of eigenvalues above the shift: the positive pivots, by Sylvester's law."""
    return int(sum(pivot > 0 for pivot in _ldl(a, shift)[1]))


def _solve(lower: np.ndarray, pivots: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solution of L diag(pivots) L' x = right."""
    x = right.copy()
    for j in range(len(x)):
        x[j + 1 :] -= lower[j + 1 :, j] * x[j]
    x = x / pivots
    for j in range(len(x) - 1, -1, -1):
        x[:j] -= lower[j, :j] * x[j]
    return x


def _without(vector: np.ndarray, known: Sequence[np.ndarray]) -> np.ndarray:
    """Return the unit vector orthogonal to the known ones."""
    vector = vector / max(abs(entry) for entry in vector)
    for _ in range(2):
        for other in known:
            vector = vector - vector.dot(other) * other
    return vector / vector.dot(vector).sqrt()
