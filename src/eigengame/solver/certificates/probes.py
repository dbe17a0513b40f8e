r"""Random probes that bound the variance of every direction outside the players.

Let $V$ be $K$ orthonormal players that do not depend on the probes, $\Pi$ the projection on the complement of their
span, $F = \Pi M\Pi$ with largest eigenvalue $\lambda$ and unit eigenvector $y$, and $G$ a block of $r$ Gaussian
probes. If blocks $X_q$ are known with $X_qy = \lambda^qGy$, then for every polynomial $p$ with coefficients $a_q$

$$|p(\lambda)|\,\|Gy\| = \|\sum_q a_qX_qy\| \le \|\sum_q a_qX_q\|,$$

and $\|Gy\|^2$ is a chi-squared variable with $r$ degrees of freedom: with probability $1 - \delta$ it is at least
$\chi^2_r(\delta)$. This is one event, whatever the polynomial, the number of passes or the players found later: the
polynomial may be chosen afterwards. Powers $x^q$ and Chebyshev polynomials of intervals $[0, a]$ are tried.

**Blocks.** $X_0 = G\Pi$, and $X_q = X_{q-1}M\Pi$ by one pass each. In the first pass the players are not known
yet, and $P = GM$ is accumulated. Then $\tilde X_1 = P\Pi$ and $\tilde X_q = \tilde X_{q-1}M\Pi$ differ from the
blocks above by the part of the probes in the players:

$$\tilde X_q = X_q + (GV^\top)R_q,\qquad R_1 = VM\Pi,\quad R_q = R_{q-1}M\Pi.$$

$R_q$ follows from the products of the Krylov space of the players, one pass later than $\tilde X_q$. Until
then $R_qy = \lambda R_{q-1}y$ is used: the block depends on $\lambda$, and its norm is a convex function of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from eigengame.solver.certificates.krylov_space import KrylovSpace
from eigengame.solver.certificates.rounding import gamma

STREAM = 0x9E3779B9
"""Part of the seed of all probes. Data that was drawn from a small seed is then independent of them."""

FINENESS = 1.02
"""Ratio of the ends of the intervals in which an eigenvalue is excluded."""

INTERVALS = 0.97 * np.geomspace(1 / 32, 1, 11)
"""Intervals of Chebyshev polynomials, as shares of the level that is already known."""

LARGEST_DEGREE = 8
"""Largest degree of a polynomial."""

FEATURES = 2**16
"""Features whose inner products are added at a time."""


def draw_probes(seed: int, count: int, d: int) -> np.ndarray:
    """Return Gaussian probes (count, d) in float64."""
    return np.random.default_rng([STREAM, seed]).standard_normal((count, d))


@cache
def least_norm(risk: float, degrees: int) -> float:
    """Return the norm that a Gaussian vector exceeds with probability `1 - risk`. It takes SciPy 0.1 ms."""
    return math.sqrt(chi2.ppf(risk, df=degrees))


class ProbeImages(NamedTuple):
    """Probes (r, d), their products with M (r, d) from the first pass, and a bound on the error of the products."""

    draws: np.ndarray
    images: np.ndarray
    error: float


@dataclass(frozen=True)
class Probes:
    r"""Powers of M on random probes outside fixed players.

    Attributes
    ----------
    players : array of shape (K, d)
        $V$, orthonormal.
    blocks : tuple of arrays of shape (r, d)
        $\tilde X_0, \dots, \tilde X_t$.
    shares : array of shape (r, K) or None
        $GV^\top$; None if the players were known before the first product, so that $\tilde X_q = X_q$.
    residuals : tuple of arrays of shape (K, d)
        $R_1, R_2, \dots$ as far as they are known.
    errors : tuple of float
        Bounds $\eta_j$: the computed block of degree q is off by at most $\sum_{j \le q}\eta_j\lambda^{q-j}$.
    unit : float
        Everything above is that of M divided by this, so that high powers are within the range of numbers.
    """

    players: np.ndarray
    blocks: tuple[np.ndarray, ...]
    shares: np.ndarray | None = None
    residuals: tuple[np.ndarray, ...] = ()
    errors: tuple[float, ...] = (0.0,)
    unit: float = 1.0

    @classmethod
    def outside(cls, players: np.ndarray, draws: np.ndarray, unit: float = 1.0) -> Probes:
        """Return probes (r, d) without any product so far."""
        return cls(players, (_outside(draws, players),), unit=unit)

    @classmethod
    def after_first_pass(
        cls,
        players: np.ndarray,
        draws: np.ndarray,
        images: np.ndarray,
        error: float,
        unit: float = 1.0,
    ) -> Probes:
        """Return probes (r, d) whose images $GM$ (r, d) were accumulated before the players were known.

        `error` bounds the Frobenius norm of the error of the images.
        """
        blocks = (_outside(draws, players), _outside(images / unit, players))
        return cls(players, blocks, draws @ players.T, (), (0.0, error / unit), unit)

    @property
    def count(self) -> int:
        """Number of probes r."""
        return len(self.blocks[0])

    @property
    def powers(self) -> int:
        """Number of products with M so far."""
        return len(self.blocks) - 1

    @property
    def complete(self) -> bool:
        """Whether further products would not be used."""
        return self.powers >= LARGEST_DEGREE

    def block(self) -> np.ndarray:
        """Return unit directions (r, d) for the next product."""
        return self.blocks[-1] / self._lengths()[:, None]

    def multiplied(self, directions: np.ndarray, images: np.ndarray, floor: np.ndarray) -> Probes:
        """Return the probes after one more product.

        Parameters
        ----------
        directions : array of shape (r, d)
            `block()`, rounded to the precision of the pass.
        images : array of shape (r, d)
            Its product with M.
        floor : array of shape (r,)
            Bounds on the errors of the images.
        """
        lengths = self._lengths()
        rounded = float(np.linalg.norm((directions - self.block()) * lengths[:, None]))
        block = _outside(images / self.unit * lengths[:, None], self.players)
        # A rounded direction has a part in the players as well, whose product with M has a part outside.
        *before, last = self.errors
        errors = (*before, last + 2 * rounded, float(np.linalg.norm(floor / self.unit * lengths)))
        return replace(self, blocks=(*self.blocks, block), errors=errors)

    def with_space(self, space: KrylovSpace) -> Probes:
        """Return the probes with all residuals that follow from the products of a space with the players in it."""
        if self.shares is None:
            return self
        found, errors = list(self.residuals), list(self.errors)
        while len(found) < self.powers:
            images, rest = space.image_of(found[-1] if found else self.players)
            missing = spectral_norm(self.shares @ rest)
            if found and missing > 1e-3 * spectral_norm(self.shares @ found[-1]):
                break  # the space does not hold them yet
            errors[len(found)] += missing
            noise = float(np.linalg.norm(self.shares, 2) * np.linalg.norm(space.floor / self.unit))
            errors[len(found) + 1] += noise
            found.append(_outside(images / self.unit, self.players))
        return replace(self, residuals=tuple(found), errors=tuple(errors))

    def level(self, risk: float) -> float:
        """Return a bound on the largest eigenvalue outside the players that fails with probability `risk`.

        It is infinite if there are no products yet.
        """
        if self.powers == 0 or (self.shares is not None and not self.residuals):
            return math.inf
        scale = spectral_norm(self._exact(1)[0])
        least = least_norm(risk, self.count)
        first = least - self.errors[0]  # what is left of an eigenvector in the draws as they are
        if first <= 0:
            return math.inf
        if scale == 0:
            return self.errors[1] / first * self.unit
        norms = _Norms.of(self, scale)
        best = (1 + self.errors[1] / scale) / first  # of the first power, in units of scale
        for power in range(2, norms.degree + 1):
            monomial = np.zeros(power + 1)
            monomial[-1] = 1
            best = norms.excluded(monomial, best, least)
        for degree in range(max(2, norms.degree - 1), norms.degree + 1):
            for end in best * INTERVALS:
                best = norms.excluded(_chebyshev(degree, end), best, least, end)
        return best * scale * self.unit

    def _lengths(self) -> np.ndarray:
        """Return the lengths of the rows of the last block, 1 for zero rows, shape (r,)."""
        lengths = np.linalg.norm(self.blocks[-1], axis=1)
        return np.where(lengths > 0, lengths, 1)

    def _exact(
        self, power: int, columns: slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray | None]:
        r"""Return the block $X_q$ and None, or two blocks of which $X_qy = \tilde X_qy - \lambda Ly$ is made.

        The second is $L = (GV^\top)R_{q-1}$. Only some columns are returned.
        """
        block = self.blocks[power][:, columns]
        if self.shares is None or power == 0:
            return block, None
        if power <= len(self.residuals):
            return block - self.shares @ self.residuals[power - 1][:, columns], None
        return block, self.shares @ self.residuals[power - 2][:, columns]


@dataclass(frozen=True)
class _Norms:
    """Norms of polynomials of blocks, in a unit in which M is divided by a scale.

    Attributes
    ----------
    gram : array of shape (t + 2, r, t + 2, r)
        Inner products of the rows of all blocks; the last is that of the lagging matrix.
    errors : array of shape (t + 1,)
    degree : int
        The largest degree t.
    lagging : bool
        Whether the block of the largest degree depends on the eigenvalue.
    """

    gram: np.ndarray
    errors: np.ndarray
    degree: int
    lagging: bool

    @classmethod
    def of(cls, probes: Probes, scale: float) -> _Norms:
        exact = len(probes.residuals) if probes.shares is not None else probes.powers
        degree = min(exact + 1 if probes.shares is not None else exact, probes.powers)
        degree = min(degree, LARGEST_DEGREE)
        lagging = probes.shares is not None and degree > len(probes.residuals)
        (r, d), size = probes.blocks[0].shape, degree + 2
        gram = np.zeros((size * r, size * r))
        for begin in range(0, d, FEATURES):  # arrays of all features would take most of the memory
            stacked = _stacked(probes, degree, scale, slice(begin, begin + FEATURES))
            gram += stacked @ stacked.T
        gram = gram.reshape(size, r, size, r)
        errors = np.array([error / scale**j for j, error in enumerate(probes.errors)])
        return cls(gram, errors[: degree + 1], degree, lagging)

    def excluded(
        self, polynomial: np.ndarray, best: float, least: float, end: float = 0.0
    ) -> float:
        """Return the smallest level that a polynomial shows, from `best` downwards.

        The polynomial increases from `end` on. In each interval the norm is largest at one of the ends.
        """
        norm = self._norm(polynomial)
        upper, above = best, norm(best)
        while (lower := upper / FINENESS) > end:
            below = norm(lower)
            value = abs(float(np.polynomial.polynomial.polyval(lower, polynomial)))
            if value * least <= max(above, below) + self._error(polynomial, upper):
                break
            upper, above = lower, below
        return upper

    def _norm(self, polynomial: np.ndarray) -> Callable[[float], float]:
        """Return the norm of a polynomial of the blocks as a function of the eigenvalue outside."""
        top = len(polynomial) - 1
        weights = np.zeros(self.degree + 2)
        weights[: top + 1] = polynomial
        fixed = np.einsum("i,iajb,j->ab", weights, self.gram, weights)
        # The rounding of the inner products, relative to the largest term.
        sizes = np.abs(weights) * np.sqrt(np.einsum("iaia->i", self.gram))
        noise = 1e-14 * float(np.sum(sizes)) ** 2
        if top < self.degree or not self.lagging:
            constant = _root(fixed, noise)
            return lambda value: constant
        last = -polynomial[-1]
        mixed = last * np.einsum("i,iab->ab", weights, self.gram[:, :, -1])
        square = last**2 * self.gram[-1, :, -1]
        return lambda value: _root(fixed + value * (mixed + mixed.T) + value**2 * square, noise)

    def _error(self, polynomial: np.ndarray, value: float) -> float:
        """Return a bound on the error of the norm, for eigenvalues up to `value`."""
        sizes, total = np.abs(polynomial), 0.0
        for j in range(len(sizes)):
            powers = value ** np.arange(len(sizes) - j)
            total += self.errors[j] * float(sizes[j:] @ powers)
        return total


def _stacked(probes: Probes, degree: int, scale: float, columns: slice) -> np.ndarray:
    """Return some columns of all blocks and the lagging matrix, one below the other, for M divided by a scale."""
    blocks, lag = [], None
    for power in range(degree + 1):
        block, lag = probes._exact(power, columns)
        blocks.append(block / scale**power)
    blocks.append(np.zeros_like(blocks[0]) if lag is None else lag / scale ** (degree - 1))
    return np.concatenate(blocks)


def spectral_norm(block: np.ndarray) -> float:
    """Return an upper bound on the spectral norm of a block (r, d), which it exceeds by rounding only.

    It is the root of the largest eigenvalue of the inner products of its rows, which takes a tenth of the time of
    singular values. Their rounding is added.
    """
    square = block @ block.T
    largest = float(np.linalg.eigvalsh(square)[-1])
    rounding = gamma(sum(block.shape)) * float(np.trace(square))
    return math.sqrt(max(largest, 0.0) + 2 * rounding)


def _root(square: np.ndarray, noise: float) -> float:
    """Return the spectral norm of a block from its inner products."""
    return math.sqrt(max(float(np.linalg.eigvalsh(square)[-1]), 0.0) + noise)


def _chebyshev(degree: int, end: float) -> np.ndarray:
    """Return the coefficients of the Chebyshev polynomial of [0, end], the constant first."""
    return _unit_chebyshev(degree) / end ** np.arange(degree + 1)


@cache
def _unit_chebyshev(degree: int) -> np.ndarray:
    """Return the coefficients of the Chebyshev polynomial of [0, 1]."""
    series = np.polynomial.Chebyshev.basis(degree, domain=[0, 1])
    return series.convert(kind=np.polynomial.Polynomial).coef


def _outside(block: np.ndarray, players: np.ndarray) -> np.ndarray:
    """Return a block (r, d) without its part in the span of orthonormal players (K, d).

    Subtracted twice: once leaves a part of the size of the rounding of what is subtracted.
    """
    for _ in range(2):
        block = block - (block @ players.T) @ players
    return block
