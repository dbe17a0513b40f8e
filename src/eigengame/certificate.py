r"""Certificates: how far each component can be from the true one, with no truth at hand.

Given orthonormal players $V$ settled on $M$ and their exact images $MV$, write $M$ in a basis that
begins with $V$: the block of $V$ is $\mathrm{diag}(\theta)$, the coupling to the rest is the residuals
$r_i = Mv_i - \theta_i v_i$, and the rest is some $F$. If $\lambda_{max}(F) \le \mu$ (nothing larger was
missed), an eigenvector $[x; y]$ of $M$ with eigenvalue $\lambda \ge \theta_i > \mu$ has
$y = (\lambda - F)^{-1}Ex$ and $x$ is an eigenvector of $\mathrm{diag}(\theta) + S$ with
$0 \preceq S \preceq E^\top E/(\theta_i - \mu)$. With $a_j = |r_j|/\sqrt{\theta_i - \mu}$,
$d_j$ the least distance of $\lambda$ to $\theta_j$ and $q = \sum_{j\ne i} a_j^2/d_j < 1$ that gives

$$\tan^2\angle(v_i, \text{component } i) \le \frac{1}{(1-q)^2}\Big[\frac{|r_i|^2}{(\theta_i-\mu)^2}
+ \sum_{j\ne i}\frac{a_i^2a_j^2}{d_j^2}\Big].$$

The first term is what lies outside the players, over a gap to what is *outside*; mixing between
players counts only to second order. The classical $|r_i|/\min_j|\theta_i-\theta_j|$ is looser wherever
neighbours are close.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2

from eigengame.game import theory
from eigengame.game.rarely import rarely
from eigengame.game.rows import full_product
from eigengame.game.sphere import project_tangent, safe_norms
from eigengame.game.wide import long_product, measured_product
from eigengame.parallel.gather import spread, whole


@dataclass(frozen=True)
class Certificate:
    r"""How far to trust each of k components.

    Attributes
    ----------
    kind : {"certified", "conditional", "estimate"}
        *certified*: the players' images under the whole data were measured, and random probes bound
        what may have been missed, with `confidence`. *conditional*: measured, but nothing was done to
        see whether a larger direction was missed: bounds hold if none was. *estimate*: one pass with
        no second look; nothing is guaranteed.
    rayleigh : array of shape (k,)
        Rayleigh quotient of each component: its variance.
    residual : array of shape (k,)
        Length of $Mv_i - \theta_i v_i$, in the same unit.
    gap : array of shape (k,)
        Distance from the component's variance to the nearest it could be confused with.
    angle : array of shape (k,)
        Bound on the angle to the true component, radians; pi/2 where nothing can be said.
    level : float
        Variance above which no direction outside the players exists (certified), or is assumed to.
    confidence : float
        Probability with which `level` holds: 1 less the probes' chance to miss; 0 if not checked.
    gradient_angle : array of shape (k,)
        The paper's own bound, $(\pi/g_i)\|\nabla^R\|$ (Lemma angle_to_riemann_grad).
    penalty_ratio : array of shape (k,)
        Each player's penalty over its Rayleigh quotient (the paper's 0.025 on ResNet-200).
    """

    kind: Literal["certified", "conditional", "estimate"]
    rayleigh: np.ndarray
    residual: np.ndarray
    gap: np.ndarray
    angle: np.ndarray
    level: float
    confidence: float
    gradient_angle: np.ndarray
    penalty_ratio: np.ndarray
    probes: int = field(default=0)
    powers: int = field(default=0)

    def streak(self, tol: float = math.pi / 8) -> int:
        """Return how many leading components are within `tol` radians by the bound."""
        return int(np.cumprod(self.angle <= tol).sum())

    def __str__(self) -> str:
        said = {
            "certified": f"certified with probability {self.confidence:.4g}",
            "conditional": "measured; holds if no larger direction was missed",
            "estimate": "an estimate from one pass, nothing is guaranteed",
        }[self.kind]
        lines = [
            f"{said}",
            f"{'component':>9} {'variance':>11} {'residual':>10} {'gap':>10} {'angle':>9}",
        ]
        for i, row in enumerate(
            zip(self.rayleigh, self.residual, self.gap, self.angle, strict=True), start=1
        ):
            lines.append(f"{i:>9} {row[0]:>11.4g} {row[1]:>10.2g} {row[2]:>10.2g} {row[3]:>9.2g}")
        return "\n".join(lines)


def angle_bounds(values: np.ndarray, couplings: np.ndarray, level: float) -> np.ndarray:
    r"""Return the bound on each player's angle, shape (K,), radians.

    Parameters
    ----------
    values : array of shape (K,)
        $\theta$, largest first.
    couplings : array of shape (K, K)
        $E^\top E$: inner products of the residuals.
    level : float
        $\mu$, a bound on the largest eigenvalue outside the players' span.
    """
    count = values.size
    norms2 = np.maximum(np.diag(couplings), 0)
    bounds = np.full(count, math.pi / 2)
    for i in range(count):
        room = values[i] - level
        if room <= 0:
            continue
        # lambda_i is at least theta_i and at most the ith eigenvalue with all of the coupling in.
        reach = np.linalg.eigvalsh(np.diag(values) + couplings / room)[::-1]
        others = np.arange(count) != i
        distance = np.where(np.arange(count) < i, values - reach[i], values[i] - values)[others]
        if (distance <= 0).any():
            continue
        pull = norms2[others] / room
        q = np.sum(pull / distance)
        if q >= 1:
            continue
        outside = norms2[i] / room**2
        inside = np.sum(pull * (norms2[i] / room) / distance**2)
        bounds[i] = math.atan(math.sqrt(outside + inside) / (1 - q))
    return bounds


def certificate(
    players: Any,
    images: Any,
    k: int,
    *,
    scale: float = 1.0,
    level: float | None = None,
    confidence: float = 0.0,
    probes: int = 0,
    powers: int = 0,
    kind: Literal["certified", "conditional", "estimate"] | None = None,
) -> Certificate:
    """Return the certificate of the first k players from all players and their images.

    Parameters
    ----------
    players, images : arrays of shape (K, d)
        Orthonormal settled players, and $M$ times each.
    k : int
        How many are components; the rest are extra players, whose values bound the last gap.
    scale : float
        What $M$ is divided by to be a covariance, for the figures that are variances.
    level : float, optional
        In the unit of $M$; by default the last player's value and residual stand in for it.
    confidence, probes, powers
        Of the level.
    """
    eps = float(np.finfo(players.dtype).eps)
    there = players.size > LARGE and not spread(players)
    gram, couplings, gradient = (_measured_there if there else _measured)(players, images)
    values = np.diag(gram).copy()
    # What products in this dtype cannot resolve is added, not subtracted away.
    floor = 4 * eps * max(values.max(initial=0), 0)
    couplings[np.diag_indices_from(couplings)] += floor**2
    off = np.abs(gram - np.diag(values)).max(initial=0)
    assumed = values[-1] + math.sqrt(couplings[-1, -1]) if len(values) > k else _tail(values)
    mu = (assumed if level is None else level) + off
    sizes = np.sqrt(np.diag(couplings))
    angle = np.maximum(angle_bounds(values, couplings, mu), 0)
    neighbours = np.abs(values[:, None] - values[None, :]) + np.diag(np.full(values.size, np.inf))
    gap = np.minimum(neighbours.min(axis=1), values - mu)
    below = np.append(values[1:], min(mu, values[-1]))
    drop = values - below
    penalty = np.array(
        [np.sum(gram[:i, i] ** 2 / np.where(values[:i] > 0, values[:i], 1)) for i in range(k)]
    )
    found: Literal["certified", "conditional", "estimate"] = (
        "certified" if confidence > 0 else "conditional"
    )
    safe = np.where(drop > 0, drop, np.inf)
    gradient_angle = np.where(drop > 0, theory.angle_bound(gradient, safe), math.pi / 2)
    return Certificate(
        kind=kind or found,
        rayleigh=values[:k] / scale,
        residual=sizes[:k] / scale,
        gap=gap[:k] / scale,
        angle=angle[:k],
        level=float(mu / scale),
        confidence=confidence,
        gradient_angle=np.minimum(gradient_angle, math.pi / 2)[:k],
        penalty_ratio=penalty / np.where(values[:k] > 0, values[:k], 1),
        probes=probes,
        powers=powers,
    )


def _tail(values: np.ndarray) -> float:
    """Return a stand-in for the next value where there is no extra player: nothing may be below."""
    return float(values[-1]) if values.size else 0.0


LARGE = 2**25
"""Numbers from which on players are measured where they are, in their own precision, summed in chunks."""

Measured = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Inner products of players and images (K, K), of residuals (K, K), and lengths of gradients (K,)."""


def _measured(players: Any, images: Any) -> Measured:
    """Return inner products and lengths, in float64."""
    v, mv = whole(players).astype(np.float64), whole(images).astype(np.float64)
    gram = (v @ mv.T + mv @ v.T) / 2
    residuals = mv - gram @ v
    gradient = 2 * _coefficients(gram).T @ mv
    gradient -= np.sum(gradient * v, axis=1, keepdims=True) * v
    return gram, residuals @ residuals.T, np.linalg.norm(gradient, axis=1)


def _measured_there(players: Any, images: Any) -> Measured:
    """Return the same of players too large to be sent for: only small matrices leave the device."""
    v, mv = jnp.asarray(players), jnp.asarray(images)
    product = np.asarray(measured_product(v, mv), np.float64)
    gram = (product + product.T) / 2
    small = jnp.asarray(gram, v.dtype), jnp.asarray(2 * _coefficients(gram).T, v.dtype)
    couplings, lengths = _couplings_there(v, mv, *small)
    return gram, np.asarray(couplings, np.float64), np.asarray(lengths, np.float64)


@rarely
def _couplings_there(
    v: jax.Array, mv: jax.Array, gram: jax.Array, steps: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return inner products of residuals, and lengths of gradients that these steps make of images."""
    residuals = mv - full_product(gram, v)
    gradient = project_tangent(v, full_product(steps, mv))
    return long_product(residuals, residuals), safe_norms(gradient)


def _coefficients(gram: np.ndarray) -> np.ndarray:
    """Return what images make up each player's gradient (eq. ui_grad), shape (K, K)."""
    rewards = np.where(np.diag(gram) > 0, np.diag(gram), 1)
    return np.eye(len(gram)) - np.triu(gram / rewards[:, None], 1)


def missed_level(lengths2: np.ndarray, powers: int, risk: float) -> float:
    r"""Return $\mu$ with $P[\lambda_{max}(F) > \mu] \le$ `risk`, from powered random probes.

    If $F$ has an eigenvalue $\lambda$ with unit eigenvector $u$, a Gaussian probe $\omega$ has
    $|F^q\omega|^2 \ge \lambda^{2q}\langle u,\omega\rangle^2$, a chi-squared variable times
    $\lambda^{2q}$; that all of r probes come out as short as the longest one seen is then unlikely for
    large $\lambda$.

    Parameters
    ----------
    lengths2 : array of shape (r,)
        $|F^q\omega_j|^2$.
    powers : int
        $q$.
    risk : float
        The chance allowed.
    """
    longest = float(np.max(lengths2))
    if longest == 0:
        return 0.0
    least = chi2.ppf(risk ** (1 / len(lengths2)), df=1)
    return float((longest / least) ** (1 / (2 * powers)))
