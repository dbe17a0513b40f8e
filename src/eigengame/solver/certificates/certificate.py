r"""Certificates: how far each component can be from the true one, computed without knowing the truth.

What is certified are the principal components of the data as given: the eigenvectors of the exact scatter matrix
$M$ of the float64 values of the (prepared, weighted) rows about their exact mean. The bound includes every error
on the way: residuals, mixing between close components, directions that may have been missed, and the rounding of
products, means and stored components. `bounds` has the inequalities, `rounding` the rounding of products,
`probes` the missed directions.

Components whose variances differ by less than the rounding are not determined by the data: their bound is
pi/2. Their span usually is: see `Cluster`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from eigengame.game import theory
from eigengame.metrics import angular_error
from eigengame.solver.certificates import certificate_text
from eigengame.solver.certificates.bounds import Block, angle_bounds
from eigengame.solver.certificates.certificate_text import Finding
from eigengame.solver.certificates.clusters import INSEPARABLE, Cluster, find_clusters
from eigengame.solver.certificates.image_errors import ImageErrors
from eigengame.solver.certificates.rounding import gamma
from eigengame.solver.certificates.small_products import SmallProducts, small_products

Kind = Literal["certified", "conditional", "estimate"]


@dataclass(frozen=True)
class Certificate:
    r"""Bounds on the errors of k components.

    Attributes
    ----------
    kind : {"certified", "conditional", "estimate"}
        *certified*: the components were compared with the whole data, and random probes bound what may have been
        missed, with `confidence`. After one pass some components may have no bound (pi/2). *conditional*: measured,
        but nothing checked whether a larger direction was missed; bounds hold if none was. *estimate*: one pass
        without a measurement; nothing is guaranteed.
    rayleigh : array of shape (k,)
        Rayleigh quotient of each component: its variance. After one pass, the strength of its player.
    residual : array of shape (k,)
        Length of $Mv_i - \theta_i v_i$ as computed, in the same unit. After one pass, a bound on it by the probes:
        where the angle is bounded, the variance is off by at most this.
    gap : array of shape (k,)
        Distance from the component's variance to the nearest it could be confused with.
    angle : array of shape (k,)
        Bound on the angle to the true component, in radians; pi/2 if there is no bound.
    level : float
        Variance above which no direction outside the players exists (certified), or is assumed to.
    confidence : float
        Probability with which `level` holds; 0 if it was not checked.
    gradient_angle : array of shape (k,)
        The paper's own bound, $(\pi/g_i)\|\nabla^R\|$ (Lemma angle_to_riemann_grad).
    penalty_ratio : array of shape (k,)
        Penalty of each player divided by its Rayleigh quotient (0.025 in the paper, on ResNet-200).
    clusters : tuple of Cluster
        Groups of components that cannot be separated, but whose span is determined.
    estimate : array of shape (k,), optional
        Estimate of each angle after one pass. It guarantees nothing.
    coupling : float
        After one pass, bound on the error of each variance as an eigenvalue (`eigengame.solver.streams.one_pass`).
    separated : int, optional
        After one pass, number of leading components whose variances are certain to be the largest.
    """

    kind: Kind
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
    clusters: tuple[Cluster, ...] = field(default=())
    estimate: np.ndarray | None = field(default=None)
    coupling: float = field(default=0.0)
    separated: int | None = field(default=None)

    @property
    def group_angle(self) -> np.ndarray:
        """Bound of each component, or of the cluster that contains it if that is smaller, shape (k,)."""
        found = self.angle.copy()
        for cluster in self.clusters:
            own = [i for i in cluster.members if i < len(found)]
            found[own] = np.minimum(found[own], cluster.angle)
        return found

    def streak(self, tol: float = math.pi / 8) -> int:
        """Return the number of leading components within `tol` radians by their own bound."""
        return int(np.cumprod(self.angle <= tol).sum())

    def within(self, tol: float, count: int | None = None) -> bool:
        """Return whether each of the first `count` components, or its cluster, is within `tol` radians."""
        return bool((self.group_angle[:count] <= tol).all())

    def first(self, k: int) -> Certificate:
        """Return the certificate of the first k components."""
        arrays = ("rayleigh", "residual", "gap", "angle", "gradient_angle", "penalty_ratio")
        return replace(
            self,
            **{name: getattr(self, name)[:k] for name in arrays},
            estimate=None if self.estimate is None else self.estimate[:k],
            clusters=tuple(one for one in self.clusters if one.members[0] < k),
            separated=None if self.separated is None else min(self.separated, k),
        )

    def open_components(self, tol: float) -> np.ndarray:
        """Return whether each component, and its cluster, is not certified within `tol` radians, shape (k,)."""
        return ~(self.group_angle <= tol) | (self.kind != "certified")

    def scaled(self, factor: float) -> Certificate:
        """Return the certificate with its variances multiplied by a factor; angles stay as they are."""
        if factor == 1:
            return self
        return replace(
            self,
            rayleigh=self.rayleigh * factor,
            residual=self.residual * factor,
            gap=self.gap * factor,
            level=self.level * factor,
            coupling=self.coupling * factor,
            clusters=tuple(replace(one, gap=one.gap * factor) for one in self.clusters),
        )

    def findings(self) -> list[Finding]:
        """Return kind, angle and reason of each component."""
        return certificate_text.findings(self)

    def notes(self) -> list[str]:
        """Return sentences about clusters, and about components without a bound."""
        return certificate_text.notes(self)

    @property
    def advice(self) -> str:
        """What to do about missing bounds after one pass; empty if there is nothing to say."""
        return certificate_text.advice(self)

    def __str__(self) -> str:
        return certificate_text.table(self)


def certificate(
    players: Any,
    images: Any,
    k: int,
    *,
    floor: np.ndarray,
    scores: np.ndarray | None = None,
    scale: float = 1.0,
    level: float | None = None,
    confidence: float = 0.0,
    probes: int = 0,
    powers: int = 0,
    tol: float | None = None,
    measured: SmallProducts | None = None,
) -> Certificate:
    r"""Return the certificate of the first k players from all players and their images.

    Parameters
    ----------
    players, images : arrays of shape (K, d)
        Nearly orthonormal players, and $M$ times each.
    k : int
        Number of components; the other players are extra, and their values bound the last gap.
    floor : array of shape (K,)
        Bound on the norm of the error of each image (see `eigengame.solver.certificates.rounding`).
    scores : array of shape (K,), optional
        Bound on the norm of further errors of the scores of each player: along a unit vector $w$ they add at most
        this times $\sqrt{w^\top Mw}$ to the error of its image.
    scale : float
        Divisor of $M$ for a covariance, for the attributes that are variances.
    level : float, optional
        Bound on the largest eigenvalue outside the players, in the unit of $M$; minus infinity if nothing is
        outside. By default it is estimated by the value and residual of the last player.
    confidence, probes, powers
        Of the level.
    tol : float, optional
        Tolerance: neighbours that rounding keeps above it form clusters.
    measured : SmallProducts, optional
        Those of the players and images, if they are known.
    """
    measured = small_products(players, images) if measured is None else measured
    turn = measured.turn
    if turn is None:
        return _unknown(measured, k, scale)
    gram = turn @ measured.gram @ turn.T
    values = np.diag(gram).copy()
    residual = np.sqrt(np.maximum(np.diag(turn @ measured.couplings @ turn.T), 0))
    # Inner products of images with players, and residuals, are rounded as well.
    floor = np.abs(turn) @ floor + 2 * gamma(sum(players.shape)) * (np.abs(values) + residual)
    scores = np.zeros_like(values) if scores is None else np.abs(turn) @ scores
    errors = ImageErrors.of(values, floor, scores, level)
    rounding, floor = errors.inside, errors.outside
    outside = residual + floor
    off = np.abs(gram)
    np.fill_diagonal(off, 0)
    if level is None:
        # Without extra players nothing may be below the last one.
        level = float(values[-1] + outside[-1]) if len(values) > k else float(values[-1])
    error = errors.norm
    block = Block(values, off + rounding, off.sum(axis=1) + error, outside, level)
    angle = np.minimum(angle_bounds(block, k) + measured.tilt[:k], math.pi / 2)
    best = Block(values, rounding, np.full(values.size, error), floor, level)
    neighbours = np.abs(values[:, None] - values[None, :]) + np.diag(np.full(values.size, np.inf))
    gap = np.minimum(neighbours.min(axis=1), values - level)
    plain = np.diag(measured.gram)
    return Certificate(
        kind="certified" if confidence > 0 else "conditional",
        rayleigh=plain[:k] / scale,
        residual=residual[:k] / scale,
        gap=gap[:k] / scale,
        angle=angle,
        level=max(level, 0.0) / scale,
        confidence=confidence,
        gradient_angle=_gradient_angle(plain, measured.gradient, level)[:k],
        penalty_ratio=_penalty_ratio(measured.gram, k),
        probes=probes,
        powers=powers,
        clusters=tuple(find_clusters(block, best, angle, tol or INSEPARABLE, scale)),
    )


def tighter(one: Certificate, other: Certificate) -> Certificate:
    """Return the first of two certificates of the same components, with the smaller bound of each component."""
    known = {cluster.members: cluster.angle for cluster in other.clusters}
    clusters = tuple(
        replace(cluster, angle=min(cluster.angle, known.get(cluster.members, math.pi)))
        for cluster in one.clusters
    )
    return replace(one, angle=np.minimum(one.angle, other.angle), clusters=clusters)


def stored(found: Certificate, settled: np.ndarray, kept: np.ndarray) -> Certificate:
    """Return the certificate of players as they are stored, from that of the measured ones: angles add up.

    Parameters
    ----------
    found : Certificate
        Of `settled`.
    settled, kept : arrays of shape (K, d)
        Players in float64, and the same players rounded or rotated.
    """
    k = len(found.angle)
    # One at a time: large temporary arrays take longer than the angles.
    pairs = zip(kept[:k], settled[:k], strict=True)
    turned = np.array([angular_error(np.asarray(one, np.float64), own) for one, own in pairs])
    clusters = tuple(
        replace(one, angle=min(one.angle + _between(*_rows(one, kept, settled)), math.pi / 2))
        for one in found.clusters
    )
    angle = np.minimum(found.angle + turned, math.pi / 2)
    return replace(found, angle=angle, clusters=clusters)


def _rows(cluster: Cluster, *players: np.ndarray) -> list[np.ndarray]:
    """Return the players of a cluster."""
    return [one[cluster.members[0] : cluster.members[-1] + 1] for one in players]


def _between(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest angle between two spans of s rows."""
    one, other = (np.linalg.qr(np.asarray(rows, np.float64).T)[0] for rows in (one, other))
    across = np.linalg.norm(one - other @ (other.T @ one), 2)
    return math.asin(min(float(across), 1.0))


def _gradient_angle(values: np.ndarray, gradient: np.ndarray, level: float) -> np.ndarray:
    """Return the paper's bound for each player, shape (K,)."""
    drop = values - np.append(values[1:], min(max(level, 0.0), values[-1]))
    safe = np.where(drop > 0, drop, np.inf)
    bound = np.where(drop > 0, theory.angle_bound(gradient, safe), math.pi / 2)
    return np.minimum(bound, math.pi / 2)


def _penalty_ratio(gram: np.ndarray, k: int) -> np.ndarray:
    """Return each player's penalty over its Rayleigh quotient, shape (k,)."""
    values = np.diag(gram)
    safe = np.where(values > 0, values, 1)
    return np.array([np.sum(gram[:i, i] ** 2 / safe[:i]) for i in range(k)]) / safe[:k]


def _unknown(measured: SmallProducts, k: int, scale: float) -> Certificate:
    """Return the certificate of players that are too far from orthonormal for a bound."""
    values = np.diag(measured.gram)
    right, unknown = np.full(k, math.pi / 2), np.full(k, np.nan)
    return Certificate(
        "conditional", values[:k] / scale, unknown, unknown, right, 0.0, 0.0, right,
        _penalty_ratio(measured.gram, k),
    )  # fmt: skip
