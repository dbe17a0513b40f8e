r"""The paper's theory in numbers: error propagation, convergence thresholds, probabilities.

Scalars and small arrays in float64 NumPy; nothing here touches data. Without loss of generality
(appendix Nash Proof) $M = \mathrm{diag}(\Lambda)$, so a deviation $\Delta_i$ is given by its
coordinates in the eigenbasis. Players are 0-based here and 1-based in the paper.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from eigengame import _check


def _spectrum(eigenvalues: ArrayLike, at_least: int) -> np.ndarray:
    """Return the eigenvalues as float64 after checking their order and number."""
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim != 1 or values.size < at_least:
        raise ValueError(
            f"eigenvalues has shape {values.shape}: give at least {at_least}, one more than the players."
        )
    if not (np.isfinite(values).all() and (values >= 0).all() and (np.diff(values) <= 0).all()):
        raise ValueError(f"eigenvalues={values}: give finite values >= 0, largest first.")
    return values


def gaps(eigenvalues: ArrayLike) -> np.ndarray:
    r"""Return the spectral gaps $g_i = \Lambda_{ii} - \Lambda_{i+1,i+1}$, one fewer than given."""
    return -np.diff(_spectrum(eigenvalues, 2))


# ---------------------------------------------------------------------------------------------
# Error propagation: how a parent's error moves its child's optimum


class Sinusoid(NamedTuple):
    r"""A player's utility along a great circle (Lemma misspec_loss_function).

    $u_i(\theta) = A \sin^2\theta - B \sin(2\theta)/2 + C$, where $\theta$ is the angle from the true
    eigenvector $v_i$ towards $\Delta_i$.
    """

    a: float
    b: float
    c: float

    def utility(self, theta: ArrayLike) -> np.ndarray:
        """Return the utility at angle theta."""
        theta = np.asarray(theta, dtype=np.float64)
        return self.a * np.sin(theta) ** 2 - self.b * np.sin(2 * theta) / 2 + self.c

    def argmax(self) -> float:
        r"""Return the maximising angle in $[-\pi/2, \pi/2]$, with its sign.

        The utility is $\tfrac12[\sqrt{A^2+B^2}\cos(2\theta+\phi) + A + 2C]$ (Lemma ui_sinusoidal)
        with $\phi = \mathrm{atan2}(B, -A)$; the paper's $\tan^{-1}(B/A)$ has the other sign.
        """
        return -math.atan2(self.b, -self.a) / 2

    def deviation(self) -> float:
        r"""Return $|\theta_i^*|$ by the three cases of Lemma arctan_error_prop."""
        if self.a == 0:
            return math.pi / 4
        bend = math.atan(abs(self.b / self.a))
        return bend / 2 if self.a < 0 else (math.pi - bend) / 2


def error_propagation(
    eigenvalues: ArrayLike,
    parent_angles: ArrayLike,
    parent_deviations: ArrayLike,
    deviation: ArrayLike,
) -> Sinusoid:
    r"""Return $A$, $B$, $C$ of Lemma misspec_loss_function.

    Parameters
    ----------
    eigenvalues : array of shape (d,)
        The spectrum, largest first.
    parent_angles : array of shape (i,)
        $\theta_j$, the error of each parent.
    parent_deviations : array of shape (i, d)
        $\Delta_j$, the unit direction of each parent's error, orthogonal to $v_j$.
    deviation : array of shape (d,)
        $\Delta_i$, the direction in which the child is free to move, orthogonal to $v_i$.

    Returns
    -------
    Sinusoid
        The utility of player $i$, the number of parents given.
    """
    spectrum = _spectrum(eigenvalues, 1)
    theta = np.atleast_1d(np.asarray(parent_angles, dtype=np.float64))
    away = np.atleast_2d(np.asarray(parent_deviations, dtype=np.float64))
    own = np.asarray(deviation, dtype=np.float64)
    i = theta.size
    parents, mine = spectrum[:i], spectrum[i]

    sin, cos, sin2 = np.sin(theta), np.cos(theta), np.sin(2 * theta)
    own_on_parent = own[:i]  # <Delta_i, v_j>
    parent_on_own = away[:, i]  # <Delta_j, v_i>
    cross = away @ (spectrum * own)  # <Delta_i, Lambda Delta_j>
    # What a parent's reward has become: <v^_j, Lambda v^_j>.
    worth = parents * cos**2 + (away**2 @ spectrum) * sin**2

    a = own @ (spectrum * own) - mine
    a -= np.sum(
        (
            (parents * cos * own_on_parent) ** 2
            - (mine * sin * parent_on_own) ** 2
            + (sin * cross) ** 2
            + parents * sin2 * own_on_parent * cross
        )
        / worth
    )
    b = np.sum(mine * parent_on_own * (parents * sin2 * own_on_parent + 2 * sin**2 * cross) / worth)
    c = mine - np.sum((mine * sin * parent_on_own) ** 2 / worth)
    return Sinusoid(float(a), float(b), float(c))


def worked_example(parent_error: ArrayLike, kappa: float) -> np.ndarray:
    r"""Return $|\theta_i^*|$ of Example error_prop_example, as the paper prints it.

    $|B/A| = 2\epsilon\sqrt{1-\epsilon^2} / |1 - \epsilon^2(\kappa + 1/\kappa)|$ with
    $\epsilon = \sin$ of the parents' error: a soft step where $\epsilon^2 (\kappa + 1/\kappa) = 1$,
    18.3 degrees for $\kappa = 10$.

    The printed formula puts $\langle\Delta_1, \Lambda\Delta_1\rangle = \Lambda_{11}$, but the
    example's $\Delta_1$ is $v_i$, for which it is $\Lambda_{ii}$: see `worked_example_corrected` and
    the errata page.

    Parameters
    ----------
    parent_error : array
        $\theta_1$ in radians, from 0 to $\pi/2$.
    kappa : float
        $\kappa_i = \Lambda_{11}/\Lambda_{ii}$.
    """
    epsilon = np.sin(np.asarray(parent_error, dtype=np.float64))
    a = -1 + epsilon**2 * (kappa + 1 / kappa)
    b = 2 * epsilon * np.sqrt(1 - epsilon**2)
    return np.abs(np.arctan2(b, -a)) / 2


def worked_example_corrected(parent_error: ArrayLike) -> np.ndarray:
    r"""Return $|\theta_i^*|$ of the same example with $\langle\Delta_1,\Lambda\Delta_1\rangle = \Lambda_{ii}$.

    Then $A = \kappa(2\epsilon^2 - 1)/w$ and $B = 2\kappa\epsilon\sqrt{1-\epsilon^2}/w$ for the same
    $w > 0$, so $|\theta_i^*| = \theta_1$ whatever $\kappa$: within the plane of $v_1$ and $v_i$
    the child's best answer is orthogonal to its parent.
    """
    return np.asarray(parent_error, dtype=np.float64)


def soft_step(parent_error: ArrayLike, kappa: float, lean: float = 0.1) -> np.ndarray:
    r"""Return $|\theta_i^*|$ for a parent that errs towards another parent: a true soft step.

    The smallest game that has the threshold the paper's figure shows. Three players on
    $\mathrm{diag}(\kappa, \kappa, 1)$; the first errs by `parent_error` towards
    $\Delta_1 = \sqrt{1-a^2}\,v_2 + a\,v_3$ with $a$ = `lean`, the second is exact, and the third may
    move towards $v_1$. As $a \to 0$ the step is at $\epsilon^2 = 1/\kappa$: 18.4 degrees for
    $\kappa = 10$.
    """
    towards = np.array([[0.0, math.sqrt(1 - lean**2), lean], [0.0, 0.0, 1.0]])
    errors = np.atleast_1d(np.asarray(parent_error, dtype=np.float64))
    return np.array(
        [
            error_propagation([kappa, kappa, 1.0], [error, 0.0], towards, [1.0, 0, 0]).deviation()
            for error in errors
        ]
    )


def parent_tolerance(eigenvalues: ArrayLike, i: int, c: float = 1 / 16) -> float:
    r"""Return how accurate parents of player $i$ must be: $c_i g_i / ((i-1)\Lambda_{11})$.

    With parents this accurate and $c_i \le 1/16$, the child's optimum is within $8 c_i$ of $v_i$
    (Theorem parent_err_to_child_err). Player 0 has no parents: infinity.
    """
    spectrum = _spectrum(eigenvalues, i + 2)
    return math.inf if i == 0 else c * (spectrum[i] - spectrum[i + 1]) / (i * spectrum[0])


# ---------------------------------------------------------------------------------------------
# Convergence of the sequential algorithm


class Thresholds(NamedTuple):
    r"""What Theorem ui_suff_conv asks of each player, arrays of shape (k,).

    Attributes
    ----------
    c : array
        $c_i$, the fraction of its parents' canonical threshold that player $i$ demands.
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
        Angle wanted for every component, at most 1 radian.
    """
    spectrum = _spectrum(eigenvalues, _check.whole("k", k) + 1)
    if not 0 < theta_tol <= 1:
        raise ValueError(f"theta_tol={theta_tol!r}: give an angle above 0 and up to 1 radian.")
    top, g = spectrum[0], gaps(spectrum)[:k]
    if not (g > 0).all():
        raise ValueError(
            f"eigenvalues[:{k + 1}]={spectrum[: k + 1]}: the theorem needs every gap above 0."
        )
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

    A first player has no parents: $\kappa_0$ is taken as 1.
    """
    spectrum = _spectrum(eigenvalues, k + 1)
    kappa = spectrum[0] / spectrum[max(k - 2, 0)]
    return float(4 * (spectrum[0] * k + (1 + kappa) * (spectrum[k - 1] - spectrum[k]) / 16))


def literal_iterations(rho: float, gradient_norm: float) -> float:
    r"""Return $t_i = \lceil\frac54\min(\|\nabla\|/2, \rho_i)^{-2}\rceil$ (Alg. 1), as printed."""
    return _ceil(1.25 / min(gradient_norm / 2, rho) ** 2)


def scale_free_iterations(rho: float, gradient_norm: float, lipschitz: float) -> float:
    r"""Return $t_i = \lceil 5L^2\min(\|\nabla\|/2, \rho_i)^{-2}\rceil$.

    What the proof of Lemma ui_conv gives when $\eta = \alpha\nabla^R$ is put back: a step of
    $1/(2L)$ gains at least $\frac{2}{5L}\|\nabla^R\|^2$ and at most $2L$ can be gained. Scaling $M$
    leaves it unchanged, where the literal rule scales like $M^{-2}$.
    """
    return _ceil(5 * lipschitz**2 / min(gradient_norm / 2, rho) ** 2)


def _ceil(value: float) -> float:
    """Return the next whole number, or infinity: thresholds may be far below any float's reach."""
    return float(math.ceil(value)) if math.isfinite(value) else math.inf


def total_iterations(eigenvalues: ArrayLike, k: int, theta_tol: float) -> float:
    r"""Return the order of $T_k = k[\frac{(16\Lambda_{11})^k(k-1)!}{\prod_j g_j}\frac1{\theta_{tol}}]^2$.

    Theorem simp_conv_rate, whose statement prints $16\Lambda_{11}^k$ where its proof has
    $(16\Lambda_{11})^k$. An order of magnitude: the constant is not given. May be infinite.
    """
    spectrum = _spectrum(eigenvalues, k + 1)
    log_ratio = np.sum(np.log(16 * spectrum[0] / gaps(spectrum)[:k]))
    log_total = 2 * (log_ratio + math.lgamma(k) - math.log(theta_tol)) + math.log(k)
    return math.exp(log_total) if log_total < 700 else math.inf


def angle_bound(gradient_norm: ArrayLike, gap: ArrayLike) -> np.ndarray:
    r"""Return $\frac{\pi}{g_i}\|\nabla^R\|$ (Lemma angle_to_riemann_grad).

    Bounds the angle to the player's own optimum where it is within $\pi/4$ of it and its parents are
    as accurate as `parent_tolerance` asks.
    """
    return math.pi * np.asarray(gradient_norm, np.float64) / np.asarray(gap, np.float64)


def start_probability(phi: ArrayLike, d: int) -> np.ndarray:
    r"""Return $P[|\theta^0| \le \phi] = I_{\sin^2\phi}(\frac{d-1}2, \frac12)$ for a random start.

    The chance that a vector drawn uniformly from $\mathcal S^{d-1}$ is within $\phi$ of a given line.
    """
    if _check.whole("d", d) == 1:
        return np.ones_like(np.asarray(phi, dtype=np.float64))
    return betainc((d - 1) / 2, 0.5, np.sin(np.asarray(phi, dtype=np.float64)) ** 2)


def subspace_bound(k: int, d: int, theta_tol: float) -> float:
    r"""Return $k(d-k)\theta_{tol}^2 \ge \|\hat V^\top V_{\lnot k}\|_F^2$ (Corollary ang_conv_to_subspace_conv)."""
    return k * (d - k) * theta_tol**2
