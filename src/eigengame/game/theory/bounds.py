r"""Bounds on a child's utility and gradient, for parents with a bounded error.

Functions of scalars and small NumPy arrays, in float64. As in `error_propagation`, $M = \mathrm{diag}(\Lambda)$
without loss of generality. The parents satisfy $|\theta_j| \le \epsilon$. Players are 0-based here and 1-based in
the paper, so that player $i$ has $i$ parents here, and $i - 1$ in the paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from eigengame import _check


def ratio_bound(kappa: ArrayLike, epsilon: ArrayLike) -> np.ndarray:
    r"""Return $\frac{1+(1+\kappa_j)\epsilon}{\sqrt{1-\epsilon^2}}$ (Lemma ratio_bound).

    An upper bound on $|\langle\hat v_i,\Lambda\hat v_j\rangle| / \langle\hat v_j,\Lambda\hat v_j\rangle$ for any
    unit vector $\hat v_i$ and a parent with $|\theta_j| \le \epsilon$.

    Parameters
    ----------
    kappa : array
        $\kappa_j = \Lambda_{11}/\Lambda_{jj}$, at least 1.
    epsilon : array
        At least 0 and below 1.

    Notes
    -----
    The paper's proof is not valid: see the errata page. The bound holds nevertheless, and so does the smaller
    $(1+\kappa_j\epsilon)/\sqrt{1-\epsilon^2}$. The largest ratio over $\hat v_i$ is
    $\|\Lambda\hat v_j\| / \langle\hat v_j,\Lambda\hat v_j\rangle$. Write $s$ and $c$ for the sine and cosine of
    $\theta_j$, and $x = s^2\langle\Delta_j,\Lambda\Delta_j\rangle/\Lambda_{jj} \le \kappa_j s^2$. As
    $\|\Lambda\Delta_j\|^2 \le \Lambda_{11}\langle\Delta_j,\Lambda\Delta_j\rangle$, the largest ratio is at most
    $\sqrt{c^2+\kappa_j x}/(c^2+x)$. This is at most $(1+\kappa_j s)/c$: squared and without denominators, the
    statement follows from $\kappa_j x - 2x(1+\kappa_j s)^2 \le (2\kappa_j s+\kappa_j^2s^2)c^2$. The left side is
    linear in $x$. It is at most 0, or largest at $x = \kappa_j s^2$, where it is at most
    $\kappa_j^2s^2 - 4\kappa_j^2s^3$. Both are at most the right side.
    """
    kappa = np.asarray(kappa, dtype=np.float64)
    if not (kappa >= 1).all():
        raise ValueError(f"kappa={kappa}: give condition numbers of at least 1.")
    epsilon = _parent_error(epsilon)
    return (1 + (1 + kappa) * epsilon) / np.sqrt(1 - epsilon**2)


def a_bound(
    eigenvalues: ArrayLike, i: int, epsilon: ArrayLike, *, simple: bool = False
) -> np.ndarray:
    r"""Return an upper bound on $A$ of Lemma misspec_loss_function, for any deviations.

    Parameters
    ----------
    eigenvalues : array of at least i + 2 values, largest first
    i : int
        The player, 0-based: the number of its parents.
    epsilon : array
        Upper bound on the errors of the parents, at least 0 and below 1.
    simple : bool
        False: $-g_i + (i-1)(\Lambda_{11}+\Lambda_{ii})\frac{\epsilon^2}{1-\epsilon^2} +
        2(i-1)\Lambda_{11}\frac{\epsilon}{\sqrt{1-\epsilon^2}}$ (Lemma A_upperbnd). True:
        $-g_i + 8(i-1)\Lambda_{11}\epsilon$ (Lemma A_upperbnd_simple), for $\epsilon^2 \le 1/2$.
    """
    spectrum = _spectrum(eigenvalues, i)
    epsilon = _parent_error(epsilon, simple=simple)
    top, own, gap = spectrum[0], spectrum[i], spectrum[i] - spectrum[i + 1]
    if simple:
        return -gap + 8 * i * top * epsilon
    tangent = epsilon / np.sqrt(1 - epsilon**2)
    return -gap + i * (top + own) * tangent**2 + 2 * i * top * tangent


def b_bound(
    eigenvalues: ArrayLike, i: int, epsilon: ArrayLike, *, simple: bool = False
) -> np.ndarray:
    r"""Return an upper bound on $|B|$ of Lemma misspec_loss_function, for any deviations.

    Parameters
    ----------
    eigenvalues : array of at least i + 2 values, largest first
    i : int
        The player, 0-based: the number of its parents.
    epsilon : array
        Upper bound on the errors of the parents, at least 0 and below 1.
    simple : bool
        False: $2\Lambda_{ii}\frac{\epsilon}{1-\epsilon^2}[(i-1) + \epsilon\sum_{j<i}\kappa_j]$ (in the proof of
        Lemma B_upperbnd_simple). True: $8(i-1)\Lambda_{ii}\kappa_{i-1}\epsilon$ (its statement), for
        $\epsilon^2 \le 1/2$.
    """
    spectrum = _spectrum(eigenvalues, i)
    epsilon = _parent_error(epsilon, simple=simple)
    own, kappa = spectrum[i], spectrum[0] / spectrum[:i]
    if simple:
        return 8 * i * own * kappa.max(initial=1.0) * epsilon
    return 2 * own * epsilon / (1 - epsilon**2) * (i + epsilon * kappa.sum())


def tangent_bound(c: ArrayLike) -> np.ndarray:
    r"""Return $\frac{8c_i}{1-8c_i} \ge |B/A|$ (Lemma tan_arg_bound), for $0 \le c_i < 1/8$.

    It holds for parents as accurate as `parent_tolerance`. Half of it bounds the angle between the child's optimum
    and its component, and is at most $8c_i$ for $c_i \le 1/16$ (Theorem parent_err_to_child_err).
    """
    c = np.asarray(c, dtype=np.float64)
    if not ((c >= 0) & (c < 1 / 8)).all():
        raise ValueError(f"c={c}: give fractions of at least 0 and below 1/8.")
    return 8 * c / (1 - 8 * c)


def gradient_bound(eigenvalues: ArrayLike, i: int, epsilon: ArrayLike) -> np.ndarray:
    r"""Return $2\Lambda_{11}[1+(i-1)\frac{1+(1+\kappa_{i-1})\epsilon}{\sqrt{1-\epsilon^2}}] \ge \|\nabla u_i\|$.

    Lemma grad_lipschitz_eps: a bound on the ambient gradient at any unit vector.

    Parameters
    ----------
    eigenvalues : array of at least i + 2 values, largest first
    i : int
        The player, 0-based: the number of its parents.
    epsilon : array
        Upper bound on the errors of the parents, at least 0 and below 1.
    """
    spectrum = _spectrum(eigenvalues, i)
    # The last parent has the largest condition number, and so the largest ratio.
    ratio = ratio_bound(spectrum[0] / spectrum[i - 1] if i else 1.0, epsilon)
    return 2 * spectrum[0] * (1 + i * ratio)


def _spectrum(eigenvalues: ArrayLike, i: int) -> np.ndarray:
    """Return the checked spectrum, in which all parents of player i have positive eigenvalues."""
    at_least = _check.whole("i", i, low=0) + 2
    spectrum = _check.spectrum("eigenvalues", eigenvalues, at_least=at_least)
    if not (spectrum[:i] > 0).all():
        raise ValueError(
            f"eigenvalues={spectrum}: give positive values for the {i} parents of player {i}."
        )
    return spectrum


def _parent_error(epsilon: ArrayLike, *, simple: bool = False) -> np.ndarray:
    """Return the checked bound on the error of the parents."""
    epsilon = np.asarray(epsilon, dtype=np.float64)
    if not ((epsilon >= 0) & (epsilon < 1)).all():
        raise ValueError(f"epsilon={epsilon}: give errors of at least 0 and below 1 radian.")
    if simple and not (epsilon**2 <= 0.5).all():
        raise ValueError(
            f"epsilon={epsilon}: give errors of at most the square root of 1/2, or simple=False."
        )
    return epsilon
