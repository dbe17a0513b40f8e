r"""How many eigenvalues exceed a value: a bound by the random start of a Krylov space, without any further product.

Let $A$ be symmetric with eigenvectors $u_j$, and let $V$ be the Ritz vectors of a space that contains $r$ Gaussian
vectors $G$, with $AV^\top = V^\top\Theta + R^\top$ and $G = SV$. For any eigenvector, $VAu = \lambda Vu$ gives

$$(\lambda - \theta_i)\langle v_i, u\rangle = \langle R_i, u\rangle,\qquad
\|Gu\| \le \|S(\lambda - \Theta)^{-1}R\|.$$

The eigenvectors do not depend on $G$, so $Gu_j$ is Gaussian, and shorter than a quantile $s$ with small probability
only. Where the right-hand side is below $s$, there is no eigenvalue. That holds everywhere but near the Ritz values
and below some level.

**Windows.** Near a Ritz value there may be several eigenvalues. If a window holds $g$ Ritz values and more than $g$
eigenvalues, then some unit $w$ in the span of the first $g + 1$ of these eigenvectors is orthogonal to its $g$ Ritz
vectors. These drop out of the sum, and $\|Gw\|$ is at least the smallest singular value of a Gaussian matrix of
shape $(g + 1, r)$, which has a quantile as well (`least_singular_value`).

**Sums.** With $|\lambda - \mu| \le \eta$ for all eigenvalues concerned, $(\lambda - \theta)^{-1}$ is a geometric
series, so $\|Gw\| \le \sum_p\eta^p\|S(\mu - \Theta)^{-p-1}R\|$. This is computed for the Ritz values below the
level. Those above have small residuals, and the triangle inequality is enough.

If the first claim fails at the $j$-th eigenvalue, all before it are where they should be: so $j$ is at most the
number of Ritz values above the level, plus one. The risk is shared by that many eigenvectors, and by the sizes of
windows.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, gammaln

TERMS = 8
"""Terms of a series that are computed; the rest is bounded."""

GROWTH = 1.6
"""Ratio of the distances of two edges of cells from the first Ritz value below the level."""

SPARE = 12
"""Ritz values beyond the components that are tried as the last one above the level."""

TRIED = 4
"""Gaps between these Ritz values that are tried: the largest ones."""

ROOM = 0.98
"""Share of the quantile that the Ritz values below the level may take."""

FAR = 0.01
"""Share of the quantile that they take for eigenvalues beyond all cells."""


class RitzPairs(NamedTuple):
    r"""Ritz values and vectors of a Krylov space, by small matrices.

    Attributes
    ----------
    values : array of shape (m,)
        $\theta$, largest first.
    starts : array of shape (r, m)
        $S$: the Gaussian start in terms of the Ritz vectors.
    residuals : array of shape (m, q)
        $R$ in an orthonormal basis.
    errors : array of shape (m,)
        Bounds on the errors of the residuals.
    start_error : float
        Bound on the norm of $G - SV$.
    """

    values: np.ndarray
    starts: np.ndarray
    residuals: np.ndarray
    errors: np.ndarray
    start_error: float


class Count(NamedTuple):
    """At most `number` eigenvalues exceed `bound`."""

    number: int
    bound: float


class _Window(NamedTuple):
    """An interval, and the range of the Ritz values in it."""

    low: float
    high: float
    begin: int
    end: int


@cache
def least_singular_value(p: int, r: int, risk: float) -> float:
    r"""Return what the least singular value of a Gaussian matrix (p, r) exceeds with probability `1 - risk`.

    The density of its square is at most $Lx^{(r-p-1)/2}e^{-x/2}$ with
    $L = 2^{(r-p-1)/2}\Gamma(\frac{r+1}2)/(\Gamma(\frac p2)\Gamma(r-p+1))$ (Edelman, 1988), with equality for p = 1.
    """
    half = (r - p + 1) / 2
    constant = (r - p) * math.log(2) + gammaln((r + 1) / 2) - gammaln(p / 2) - gammaln(r - p + 1)
    share = min(math.log(risk) - constant - gammaln(half), 0.0)
    return math.sqrt(2 * float(gammaincinv(half, math.exp(share))))


def counted_eigenvalues(pairs: RitzPairs, least: int, risk: float) -> list[Count]:
    """Return bounds on the numbers of eigenvalues above some values, which fail together with probability `risk`.

    Parameters
    ----------
    pairs : RitzPairs
    least : int
        Smallest count that is of interest.
    risk : float
    """
    values = pairs.values[: least + SPARE + 1]
    gaps = values[least - 1 : -1] - values[least:]
    tried = least + np.argsort(-gaps)[:TRIED]
    return [one for above in tried for one in _counted(pairs, int(above), least, risk)]


def _counted(pairs: RitzPairs, above: int, least: int, risk: float) -> list[Count]:
    """Return the counts that follow with a level between two Ritz values, of which `above` are above."""
    values, r = pairs.values, len(pairs.starts)
    following = float(values[above])
    level = (float(values[above - 1]) + following) / 2
    if not level > following > 0:
        return []
    shared = risk / (2 * (least + SPARE + 1))
    single = least_singular_value(1, r, shared) - pairs.start_error
    if not single > 0:
        return []
    tail = _Tail(pairs, above)
    end = max(2 * float(values[0]), following + tail.size / (FAR * single))
    edges = _edges(level, following, end)
    taken = float(tail.sums(edges[:-1], edges[1:]).max()) + FAR * single
    if not taken < ROOM * single:
        return []
    # What each Ritz value above the level adds at unit distance, and the distance at which all together are small.
    lengths = np.linalg.norm(pairs.residuals[:above], axis=1) + pairs.errors[:above]
    pull = np.linalg.norm(pairs.starts[:, :above], axis=0) * lengths
    windows = _windows(values[:above], 1.05 * above * pull / (single - taken))
    low = np.array([max(one.low, level) for one in windows])
    high = np.array([one.high for one in windows])
    for one, part in zip(windows, tail.sums(low, high), strict=True):
        size = one.end - one.begin
        if size + 1 >= r:
            return []
        others = np.r_[0 : one.begin, one.end : above]
        distance = np.maximum(one.low - values[others], values[others] - one.high)
        needed = least_singular_value(size + 1, r, shared / (r - 2)) - pairs.start_error
        if not part + float(np.sum(pull[others] / distance)) < needed:
            return []
    followed = [max(one.high, level) for one in windows[1:]] + [level]
    return [
        Count(one.end, bound)
        for one, bound in zip(windows, followed, strict=True)
        if one.end >= least and values[one.end - 1] > bound
    ]


class _Tail:
    """The Ritz values below the level.

    Attributes
    ----------
    size : float
        Bound on the norm, multiplied by the distance of an eigenvalue from all of them.
    """

    def __init__(self, pairs: RitzPairs, above: int) -> None:
        self.values = pairs.values[above:]
        self.starts, self.residuals = pairs.starts[:, above:], pairs.residuals[above:]
        self.noise = np.linalg.norm(self.starts, axis=0) * pairs.errors[above:]
        self.norm = float(np.linalg.norm(self.residuals, 2))
        self.size = float(np.linalg.norm(self.starts)) * self.norm + float(self.noise.sum())

    def sums(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return bounds on the norm for all eigenvalues in intervals (c,) above the values, shape (c,)."""
        middle, half = (low + high) / 2, (high - low) / 2
        inverse = 1 / (middle[:, None] - self.values[None, :])
        # Terms of the series are products of ratios of at most 1, which do not overflow.
        ratio, powers, total = half[:, None] * inverse, inverse, np.zeros(len(low))
        for term in range(TERMS):
            product = np.matmul(self.starts[None] * powers[:, None, :], self.residuals)
            # The spectral norm takes longer, and matters in the first term only.
            norm = np.linalg.norm(product, 2 if term == 0 else None, axis=(1, 2))
            total += norm
            powers = powers * ratio
        rest = np.linalg.norm(self.starts[None] * powers[:, None, :], axis=(1, 2)) * self.norm
        total += rest / (1 - ratio[:, 0])
        return total + (self.noise / (low[:, None] - self.values[None, :])).sum(axis=1)


def _edges(level: float, following: float, end: float) -> np.ndarray:
    """Return the edges of cells from the level to `end`, whose distances from the Ritz value below grow."""
    edges, distance = [level], level - following
    while edges[-1] < end:
        distance *= GROWTH
        edges.append(following + distance)
    return np.array(edges)


def _windows(values: np.ndarray, radii: np.ndarray) -> list[_Window]:
    """Return the intervals about values (a,), largest first; those that overlap are joined."""
    windows: list[_Window] = []
    for i, (value, radius) in enumerate(zip(values, radii, strict=True)):
        one = _Window(float(value - radius), float(value + radius), i, i + 1)
        while windows and one.high >= windows[-1].low:
            other = windows.pop()
            one = _Window(min(one.low, other.low), max(one.high, other.high), other.begin, one.end)
        windows.append(one)
    return windows
