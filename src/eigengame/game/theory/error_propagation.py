r"""Error propagation: the effect of a parent's error on the optimum of its child.

Functions of scalars and small NumPy arrays, in float64. Without loss of generality (appendix Nash Proof)
$M = \mathrm{diag}(\Lambda)$, so a deviation $\Delta_i$ is given by its coordinates in the eigenbasis. Players are
0-based here and 1-based in the paper.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eigengame import _check


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
        with $\phi = \mathrm{atan2}(B, -A)$; the paper's $\tan^{-1}(B/A)$ is $-\phi$ if $A < 0$, and $\pi - \phi$ if
        $A > 0$.
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
        $\theta_j$, the angular error of each parent.
    parent_deviations : array of shape (i, d)
        $\Delta_j$, the unit direction of each parent's error, orthogonal to $v_j$.
    deviation : array of shape (d,)
        $\Delta_i$, the direction in which the child can move, orthogonal to $v_i$.

    Returns
    -------
    Sinusoid
        The utility of player $i$, where $i$ is the number of parents.
    """
    spectrum = _check.spectrum("eigenvalues", eigenvalues)
    d = spectrum.size
    theta = np.atleast_1d(np.asarray(parent_angles, dtype=np.float64))
    i = theta.size
    away = np.asarray(parent_deviations, dtype=np.float64)
    # Without parents, any empty array is accepted.
    away = away.reshape(0, d) if away.size == 0 else np.atleast_2d(away)
    own = np.asarray(deviation, dtype=np.float64)
    if theta.ndim != 1 or i >= d:
        raise ValueError(
            f"parent_angles has shape {theta.shape}: give one angle for each parent, "
            f"at most {d - 1} for {d} eigenvalues."
        )
    for name, given, shape in (("parent_deviations", away, (i, d)), ("deviation", own, (d,))):
        if given.shape != shape:
            raise ValueError(f"{name} has shape {given.shape}: give an array of shape {shape}.")
    parents, mine = spectrum[:i], spectrum[i]

    sin, cos, sin2 = np.sin(theta), np.cos(theta), np.sin(2 * theta)
    own_on_parent = own[:i]  # <Delta_i, v_j>
    parent_on_own = away[:, i]  # <Delta_j, v_i>
    cross = away @ (spectrum * own)  # <Delta_i, Lambda Delta_j>
    # The reward of each parent with its error: <v^_j, Lambda v^_j>.
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
    r"""Return $|\theta_i^*|$ of Example error_prop_example, as printed in the paper.

    $|B/A| = 2\epsilon\sqrt{1-\epsilon^2} / |1 - \epsilon^2(\kappa + 1/\kappa)|$ with
    $\epsilon = \sin$ of the parents' error: a soft step at $\epsilon^2 (\kappa + 1/\kappa) = 1$, which is 18.3
    degrees for $\kappa = 10$.

    The printed formula uses $\langle\Delta_1, \Lambda\Delta_1\rangle = \Lambda_{11}$, but in the example $\Delta_1$
    is $v_i$, for which the value is $\Lambda_{ii}$: see `worked_example_corrected` and the errata page.

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
    r"""Return $|\theta_i^*|$ of Example error_prop_example, corrected.

    With $\langle\Delta_1,\Lambda\Delta_1\rangle = \Lambda_{ii}$, $A = \kappa(2\epsilon^2 - 1)/w$ and $B =
    2\kappa\epsilon\sqrt{1-\epsilon^2}/w$ for the same $w > 0$, so $|\theta_i^*| = \theta_1$ for every $\kappa$:
    within the plane of $v_1$ and $v_i$ the child's best response is orthogonal to its parent.
    """
    return np.asarray(parent_error, dtype=np.float64)


def soft_step(
    parent_error: ArrayLike, kappa: float, lean: float = 0.1, second: float | None = None
) -> np.ndarray:
    r"""Return $|\theta_i^*|$ for a parent with an error towards another parent: a soft step.

    This is the smallest game with a threshold like that of the paper's figure. There are three players on
    $\mathrm{diag}(\kappa, \mu, 1)$. The first has an error of `parent_error` towards
    $\Delta_1 = \sqrt{1-a^2}\,v_2 + a\,v_3$ with $a$ = `lean`, the second is exact, and the third can move towards
    $v_1$. As $a \to 0$ the step is at $\epsilon^2 = \kappa/(\kappa\mu+\kappa-\mu)$: 19.4 degrees on
    $\mathrm{diag}(10, 9, 1)$.

    Parameters
    ----------
    parent_error : array
        $\theta_1$ in radians, from 0 to $\pi/2$.
    kappa : float
        $\kappa_i = \Lambda_{11}/\Lambda_{ii}$, above 1.
    lean : float
        The part of the error towards the child's component.
    second : float, optional
        $\mu$, the eigenvalue of the second parent, from 1 to $\kappa$; $0.9\kappa$ by default. The components of
        the parents are only defined if it is below $\kappa$.
    """
    second = 0.9 * kappa if second is None else second
    towards = np.array([[0.0, math.sqrt(1 - lean**2), lean], [0.0, 0.0, 1.0]])
    errors = np.atleast_1d(np.asarray(parent_error, dtype=np.float64))
    return np.array(
        [
            error_propagation([kappa, second, 1.0], [error, 0.0], towards, [1.0, 0, 0]).deviation()
            for error in errors
        ]
    )


def parent_tolerance(eigenvalues: ArrayLike, i: int, c: float = 1 / 16) -> float:
    r"""Return the required accuracy of the parents of player $i$: $c_i g_i / ((i-1)\Lambda_{11})$.

    With parents of this accuracy and $c_i \le 1/16$, the child's optimum is within $8 c_i$ of $v_i$ (Theorem
    parent_err_to_child_err). Infinite for player 0, which has no parents.
    """
    spectrum = _check.spectrum("eigenvalues", eigenvalues, at_least=_check.whole("i", i, low=0) + 2)
    return math.inf if i == 0 else c * (spectrum[i] - spectrum[i + 1]) / (i * spectrum[0])
