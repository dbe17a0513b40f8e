r"""Bounds on the angle between computed and true eigenvectors, rounding errors included.

Let $V$ be $K$ orthonormal players and write the exact $M$ in a basis that begins with them:

$$M = \begin{pmatrix} \mathrm{diag}(\theta) + O & E^\top \\ E & F \end{pmatrix}.$$

Nothing here is known exactly. `Block` holds bounds on what is not: $|O_{jl}| \le o_{jl}$ (measured
off-diagonal entries plus rounding), $\|E e_j\| \le e_j$ (residual norms plus rounding), $\lambda_{max}(F) \le \mu$,
and a diagonal $s$ with $-\mathrm{diag}(s) \preceq O \preceq \mathrm{diag}(s)$.

**Eigenvalues.** Let $\lambda_i$ be the $i$th largest eigenvalue of $M$. By interlacing it is at least
$\ell_i = \min_{j \le i}(\theta_j - s_j)$. If $\ell_i > \mu$ it is also an eigenvalue of
$\mathrm{diag}(\theta) + O + S$ with $S = E^\top(\lambda_i - F)^{-1}E \succeq 0$, whose diagonal is at most
$a_j^2$ with $a_j = e_j/\sqrt{\ell_i - \mu}$. On the players from $i$ on, $S \preceq \lambda - \Theta$ as soon as
$\sum_{j \ge i} a_j^2/(\lambda - \theta_j - s_j) \le 1$; the root of that equation is an upper
bound $h_i$ of $\lambda_i$.

**Eigenvectors.** Let the columns of $[X; Y]$ be orthonormal eigenvectors for a group $G$ of players (one player, or
a cluster), their eigenvalues all within the enclosure $[\ell, h]$ of the group, and let $t_j$ be the norm of
row $j$ of $X$. With $d_j$ the distance from $\theta_j$ to the enclosure, the rows of the eigenvalue equation give,
for every player outside the group,

$$d_jt_j \le b_j + \sum_{l \notin G}(o_{jl} + a_ja_l)t_l,\qquad b_j = \|o_{jG}\| + a_j\|a_G\|,$$

and $\|Y\| \le (\|e_G\| + \sum_j e_jt_j)/(\ell - \mu)$. Any $t > 0$ that satisfies the same inequality in the other
direction (strictly) is an upper bound of the norms, because the matrix of the system is then an M-matrix. So

$$\sin\angle(\mathrm{span} [X; Y], \mathrm{span} V_G) \le T,\qquad T^2 = \sum_{j \notin G} t_j^2 + \|Y\|^2.$$

For a single player the eigenvector can be scaled to $x_i = 1$ first, and $T$ bounds the tangent.

The rounding of products enters $o$ and so the tangent at first order, divided by the gap between players:
two players whose values differ by less than the rounding are tied, and get no bound of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigengame._system.lazy import lazy

SAFETY = 1.01
"""Factor on the solution of the inequalities: makes them strict, and covers the rounding of this module."""

HALVINGS = 40
"""Steps of the bisection for the upper bounds of eigenvalues; each of them is an upper bound."""

ROUNDS = 60
"""Fixed-point iterations for the inequalities; a system that has not converged by then has no bound."""


@dataclass(frozen=True)
class Block:
    r"""What is known of $M$ in a basis that begins with the players.

    Attributes
    ----------
    values : array of shape (K,)
        $\theta$, largest first.
    mixing : array of shape (K, K)
        $o$: bounds on the errors of the diagonal and on the off-diagonal entries.
    shift : array of shape (K,)
        $s$: what they can add to or take from eigenvalues. Sums of the rows of `mixing` always do; the norm of
        a matrix of rounding errors is smaller.
    outside : array of shape (K,)
        $e$: bounds on the part of $M v_j$ that lies outside the players.
    level : float
        $\mu$: bound on the largest eigenvalue outside the players; minus infinity where nothing is outside.
    """

    values: np.ndarray
    mixing: np.ndarray
    shift: np.ndarray
    outside: np.ndarray
    level: float

    @lazy
    def lower(self) -> np.ndarray:
        r"""$\ell$, a lower bound of each of the K largest eigenvalues of M, shape (K,)."""
        return np.minimum.accumulate(self.values - self.shift)

    @lazy
    def upper(self) -> np.ndarray:
        r"""$h$, an upper bound of each of the K largest eigenvalues, shape (K,); infinite if unknown."""
        rank = np.arange(self.values.size)
        raised = self.values + self.shift
        room = self.lower - self.level
        below = rank[None, :] >= rank[:, None]  # for each player, those that count
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = np.where(below, self.outside**2 / np.where(room > 0, room, np.nan)[:, None], 0)
            low = np.where(below, raised, -np.inf).max(axis=1)
            high = low + pull.sum(axis=1)  # where every term of the sum is at most its share of 1
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                total = np.sum(np.where(pull > 0, pull / (middle[:, None] - raised), 0), axis=1)
                fits = total <= 1
                low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        return np.where(room > 0, high, math.inf)


def angle_bounds(block: Block, k: int) -> np.ndarray:
    """Return a bound on the angle of each of the first k players to its eigenvector, shape (k,).

    It is pi/2 where there is none.
    """
    alone, within = np.eye(k, block.values.size, dtype=bool), block.mixing[:, :k].T
    return np.arctan(_tangents(block, alone, within, block.lower[:k], block.upper[:k]))


def span_bound(block: Block, first: int, last: int) -> float:
    """Return a bound on the largest angle between the span of players `first` to `last` and its eigenspace.

    The eigenspace is that of the eigenvalues of the same ranks.
    """
    rank = np.arange(block.values.size)
    group = (first <= rank) & (rank <= last)
    within = np.linalg.norm(block.mixing[:, group], axis=1)
    enclosure = block.lower[last : last + 1], block.upper[first : first + 1]
    (sine,) = _tangents(block, group[None, :], within[None, :], *enclosure)
    return math.asin(sine) if sine < 1 else math.pi / 2


def _tangents(
    block: Block, groups: np.ndarray, within: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Return T of each group of players; infinite where there is no bound.

    Parameters
    ----------
    block : Block
    groups : bool array of shape (g, K)
    within : array of shape (g, K)
        Norms of the parts of the rows of `mixing` within each group.
    lower, upper : arrays of shape (g,)
        The enclosures of the groups.
    """
    above = np.arange(block.values.size)[None, :] < groups.argmax(axis=1)[:, None]
    low, high = lower[:, None], upper[:, None]
    distance = np.where(above, block.values - high, low - block.values) - np.diag(block.mixing)
    distance[groups] = math.inf  # the unknowns are the players outside the group
    bounded = (lower > block.level) & np.isfinite(upper) & (distance > 0).all(axis=1)
    found = np.full(len(groups), math.inf)
    groups, distance = groups[bounded], distance[bounded]
    room = lower[bounded, None] - block.level  # infinite where nothing is outside
    pull = block.outside / np.sqrt(room)
    pushed = within[bounded] + pull * np.linalg.norm(
        np.where(groups, pull, 0), axis=1, keepdims=True
    )
    # Errors of the diagonal are in the distance.
    between = block.mixing - np.diag(np.diag(block.mixing))
    most = _solved(distance, between, pull, pushed)
    own = np.linalg.norm(np.where(groups, block.outside, 0), axis=1)
    solved = np.isfinite(most).all(axis=1)
    most = np.where(solved[:, None], most, 0)
    apart = (own + most @ block.outside) / room[:, 0]
    found[bounded] = np.where(solved, np.hypot(np.linalg.norm(most, axis=1), apart), math.inf)
    return found


def _solved(
    distance: np.ndarray, mixing: np.ndarray, pull: np.ndarray, pushed: np.ndarray
) -> np.ndarray:
    r"""Return $t$ with $d_jt_j > b_j + \sum_l(o_{jl} + a_ja_l)t_l$ for each group, shape (g, K).

    It is 0 where the distance is infinite, and positive elsewhere; infinite for a group for which none was found.
    """
    # Strictly positive, so that the inequality also shows that the system is an M-matrix.
    pushed = pushed + np.finfo(np.float64).tiny / np.finfo(np.float64).eps
    solved = np.full_like(distance, math.inf)
    left = np.arange(len(distance))  # groups without a solution so far
    found, free = pushed / distance, np.isfinite(distance)

    def next_of(t: np.ndarray) -> np.ndarray:
        along = np.sum(pull[left] * t, axis=1, keepdims=True)
        return (pushed[left] + t @ mixing.T + pull[left] * along) / distance[left]

    for _ in range(ROUNDS):
        small = (found < 1e3).all(axis=1)  # else the angle is pi/2, whatever the limit
        left, found = left[small], found[small]
        if not len(left):
            break
        wider, found = SAFETY * found, next_of(found)
        good = ((next_of(wider) < wider) | ~free[left]).all(axis=1)
        solved[left[good]] = wider[good]
        left, found = left[~good], found[~good]
    return solved
