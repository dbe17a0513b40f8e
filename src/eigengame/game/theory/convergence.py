r"""Convergence of the sequential algorithm: thresholds, iterations, bounds and probabilities.

Functions of scalars and small NumPy arrays, in float64. Players are 0-based here and 1-based in the paper.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from eigengame import _check


def gaps(eigenvalues: ArrayLike) -> np.ndarray:
    r"""Return the spectral gaps $g_i = \Lambda_{ii} - \Lambda_{i+1,i+1}$, one fewer than the eigenvalues."""
    return -np.diff(_check.spectrum("eigenvalues", eigenvalues, at_least=2))


class Thresholds(NamedTuple):
    r"""Thresholds of Theorem ui_suff_conv, arrays of shape (k,).

    Attributes
    ----------
    c : array
        $c_i$, the fraction of the canonical threshold that player $i$ requires of its parents.
    rho : array
        $\rho_i$, the Riemannian gradient norm at which player $i$ may stop.
    """

    c: np.ndarray
    rho: np.ndarray


def thresholds(eigenvalues: ArrayLike, k: int, theta_tol: float) -> Thresholds:
    r"""Return $c_i$ and $\rho_i$ of Theorem ui_suff_conv.

    $c_k = \theta_{tol}/16$, $\rho_k = g_k\theta_{tol}/2\pi$, and for $i < k$ (1-based)
    $c_i = \frac{(i-1)!\prod_{j>i}^k g_j}{(16\Lambda_{11})^{k-i}(k-1)!} c_k$,
    $\rho_i = \frac{g_i g_{i+1}}{2\pi i\Lambda_{11}} c_{i+1}$.

    Parameters
    ----------
    eigenvalues : array of at least k + 1 values, largest first
    k : int
        Number of players.
    theta_tol : float
        Angular tolerance of every component, at most 1 radian.
    """
    spectrum = _check.spectrum("eigenvalues", eigenvalues, at_least=_check.whole("k", k) + 1)
    _tolerance(theta_tol)
    top, g = spectrum[0], _positive_gaps(spectrum, k)
    c = np.empty(k)
    rho = np.empty(k)
    c[-1] = theta_tol / 16
    rho[-1] = g[-1] * theta_tol / (2 * math.pi)
    for i in range(k - 1, 0, -1):  # 1-based i, so that lines read like the theorem
        c[i - 1] = c[i] * g[i] / (16 * i * top)
        rho[i - 1] = g[i - 1] * g[i] / (2 * math.pi * i * top) * c[i]
    return Thresholds(c, rho)


def lipschitz(eigenvalues: ArrayLike, k: int) -> float:
    r"""Return $L = 4[\Lambda_{11}k + (1+\kappa_{k-1})g_k/16]$; the step size is $1/(2L)$.

    The first player has no parents: $\kappa_0 = 1$.
    """
    spectrum = _check.spectrum("eigenvalues", eigenvalues, at_least=_check.whole("k", k) + 1)
    kappa = spectrum[0] / spectrum[max(k - 2, 0)]
    return float(4 * (spectrum[0] * k + (1 + kappa) * (spectrum[k - 1] - spectrum[k]) / 16))


def player_lipschitz(eigenvalues: ArrayLike, c: ArrayLike) -> np.ndarray:
    r"""Return $L_i = 4[\Lambda_{11}i + (1+\kappa_{i-1})c_i g_i]$ of each player, shape (k,).

    Lemma grad_lipschitz_eps_parents: a bound on the ambient gradient of player $i$ if its parents are as accurate
    as `parent_tolerance`. No $L_i$ is above the common constant `lipschitz` if every $c_i \le 1/16$.

    Parameters
    ----------
    eigenvalues : array of at least k + 1 values, largest first
    c : array of shape (k,)
        $c_i$ of each player, from 0 to 1/16, for example those of `thresholds`. The first player has no parents:
        $\kappa_0 = 1$.
    """
    c = np.asarray(c, dtype=np.float64)
    if c.ndim != 1 or not c.size or not ((c >= 0) & (c <= 1 / 16)).all():
        raise ValueError(f"c={c}: give a list with a fraction from 0 to 1/16 for each player.")
    k = c.size
    spectrum = _check.spectrum("eigenvalues", eigenvalues, at_least=k + 1)
    kappa = spectrum[0] / np.concatenate([spectrum[:1], spectrum[: k - 1]])
    return 4 * (spectrum[0] * np.arange(1, k + 1) + (1 + kappa) * c * gaps(spectrum)[:k])


def literal_iterations(rho: float, gradient_norm: float) -> float:
    r"""Return $t_i = \lceil\frac54\min(\|\nabla\|/2, \rho_i)^{-2}\rceil$ (Alg. 1), as printed."""
    return _iterations(0.5, rho, gradient_norm)


def scale_free_iterations(rho: float, gradient_norm: float, lipschitz: float) -> float:
    r"""Return $t_i = \lceil 5L^2\min(\|\nabla\|/2, \rho_i)^{-2}\rceil$.

    This follows from the proof of Lemma ui_conv with $\eta = \alpha\nabla^R$. A step of $1/(2L)$ gains at least
    $\|\nabla^R\|^2/(5L)$, since the cross term of Lemma smoothness_bound is $\langle\eta, \nabla\rangle$, and the
    total gain is at most $L$, since $|u_i| \le L/2$. Each is half of the printed value, and the two factors cancel.
    The count does not depend on the scale of $M$, while that of the literal rule scales like $M^{-2}$.
    """
    return _iterations(_check.positive("lipschitz", lipschitz), rho, gradient_norm)


def trough_iterations(gap: float, start_angle: float, lipschitz: float | None = None) -> float:
    r"""Return $t_i^+$, the iterations from a start in the trough of the utility to $\pi/4$ from the optimum.

    As printed in the proof of Theorem ui_suff_conv,
    $t_i^+ = \lceil\frac54(\pi/g_i)^2(\pi/2-|\theta_i^0|)^{-2}\rceil$. This depends on the scale of $M$, like
    `literal_iterations`. With a `lipschitz` constant $L$ it is $5L^2$ in place of $5/4$, as in
    `scale_free_iterations`.

    Parameters
    ----------
    gap : float
        $g_i$, above 0.
    start_angle : float
        $|\theta_i^0|$, the angle of the start from the optimum, from 0 to $\pi/2$, where the count is infinite.
    lipschitz : float, optional
        $L$ of the step size $1/(2L)$.
    """
    if not 0 <= start_angle <= math.pi / 2:
        raise ValueError(f"start_angle={start_angle!r}: give an angle from 0 to pi / 2.")
    unit = 0.5 if lipschitz is None else _check.positive("lipschitz", lipschitz)
    rho = _check.positive("gap", gap) / math.pi * (math.pi / 2 - start_angle)
    return _iterations(unit, rho, math.inf)


def _iterations(unit: float, rho: float, gradient_norm: float) -> float:
    r"""Return $\lceil 5(\mathrm{unit}/\min(\|\nabla\|/2, \rho_i))^2\rceil$, or infinity.

    Thresholds can be very small, so their squares are avoided.
    """
    threshold = min(gradient_norm / 2, rho)
    if not threshold >= 0:
        raise ValueError(
            f"rho={rho!r}, gradient_norm={gradient_norm!r}: give values of at least 0."
        )
    ratio = unit / threshold if threshold > 0 else math.inf
    count = 5 * ratio * ratio
    return float(math.ceil(count)) if math.isfinite(count) else math.inf


def total_iterations(eigenvalues: ArrayLike, k: int, theta_tol: float) -> float:
    r"""Return the order of $T_k = k[\frac{(16\Lambda_{11})^k(k-1)!}{\prod_j g_j}\frac1{\theta_{tol}}]^2$.

    Theorem simp_conv_rate; its statement has $16\Lambda_{11}^k$, but its proof $(16\Lambda_{11})^k$. This is an
    order of magnitude, since the constant is not given. May be infinite.
    """
    spectrum = _check.spectrum("eigenvalues", eigenvalues, at_least=_check.whole("k", k) + 1)
    _tolerance(theta_tol)
    g = _positive_gaps(spectrum, k)
    log_ratio = np.sum(np.log(16 * spectrum[0] / g))
    log_total = 2 * (log_ratio + math.lgamma(k) - math.log(theta_tol)) + math.log(k)
    return math.exp(log_total) if log_total < 700 else math.inf


def angle_bound(gradient_norm: ArrayLike, gap: ArrayLike) -> np.ndarray:
    r"""Return $\frac{\pi}{g_i}\|\nabla^R\|$ (Lemma angle_to_riemann_grad).

    An upper bound on the angle to the player's optimum, if this angle is at most $\pi/4$ and its parents are as
    accurate as `parent_tolerance`.
    """
    return math.pi * np.asarray(gradient_norm, np.float64) / np.asarray(gap, np.float64)


def start_probability(phi: ArrayLike, d: int, players: int = 1) -> np.ndarray:
    r"""Return $P[|\theta^0| \le \phi]^k = I_{\sin^2\phi}(\frac{d-1}2, \frac12)^k$ for random starts.

    The probability that each of `players` independent, uniformly random vectors of $\mathcal S^{d-1}$ is within
    $\phi$ of a line of its own. Theorem simp_conv_rate needs all $k$ players within $\pi/4$ of their optima, but
    states the value for one. An optimum depends on the parents only, whose starts are independent of the player's.

    Parameters
    ----------
    phi : array
        Angles, at least 0.
    d : int
        Number of features.
    players : int
        $k$, the number of independent starts.
    """
    _check.whole("players", players)
    angle = np.asarray(phi, dtype=np.float64)
    if not (angle >= 0).all():
        raise ValueError(f"phi={phi!r}: give angles of at least 0.")
    if _check.whole("d", d) == 1:
        return np.ones_like(angle)
    # Angles to a line are at most a right angle.
    return betainc((d - 1) / 2, 0.5, np.sin(np.minimum(angle, math.pi / 2)) ** 2) ** players


def subspace_bound(k: int, d: int, theta_tol: float) -> float:
    r"""Return $k\sin^2\theta_{tol} \ge \|\hat V^\top V_{\lnot k}\|_F^2$, or 0 if $k = d$.

    Corollary ang_conv_to_subspace_conv has $k(d-k)\theta_{tol}^2$. The squared entries of each row of
    $\hat V^\top V_{\lnot k}$ have a sum of at most $\sin^2\theta_{tol}$, which gives $k$ in place of $k(d-k)$. The
    bound is attained where all players err towards one vector.
    """
    _check.component_count(k, _check.whole("d", d))
    return 0.0 if k == d else k * math.sin(min(theta_tol, math.pi / 2)) ** 2


def _tolerance(theta_tol: float) -> None:
    """Raise unless the angle is in the range of the theorems."""
    if not isinstance(theta_tol, (int, float, np.number)) or not 0 < theta_tol <= 1:
        raise ValueError(f"theta_tol={theta_tol!r}: give an angle above 0 and up to 1 radian.")


def _positive_gaps(spectrum: np.ndarray, k: int) -> np.ndarray:
    """Return the first k gaps; raise unless all are above 0."""
    g = gaps(spectrum)[:k]
    if not (g > 0).all():
        raise ValueError(
            f"eigenvalues[:{k + 1}]={spectrum[: k + 1]}: give distinct values, since the theorem needs "
            "every gap above 0."
        )
    return g
