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
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh

from eigengame.game import theory
from eigengame.game.sphere import project_tangent
from eigengame.linalg.autotune import jit_without_autotune
from eigengame.linalg.orthonormal import safe_norms
from eigengame.linalg.products import full_product, long_product, measured_product
from eigengame.metrics import angular_error
from eigengame.sharding.gather import gather, is_distributed
from eigengame.solver.bounds import Block, angle_bounds, span_bound
from eigengame.solver.rounding import gamma

INSEPARABLE = math.pi / 8
"""Angle beyond which rounding makes neighbours inseparable, where no tolerance is given."""

Kind = Literal["certified", "conditional", "estimate"]


@dataclass(frozen=True)
class Cluster:
    """Components that cannot be separated, and how well their span is determined.

    Attributes
    ----------
    members : tuple of int
        Ranks of the group, from 0. They may go beyond the components that were asked for: then only the span
        of the whole group is determined, and the components are some directions of it.
    angle : float
        Bound on the largest angle between the span of these players and the eigenspace of the same ranks, radians.
    gap : float
        Distance of the group's variances to the nearest other one, in the unit of variances.
    spread : float
        Relative difference between the largest and the smallest variance of the group.
    """

    members: tuple[int, ...]
    angle: float
    gap: float
    spread: float

    def describe(self, k: int) -> str:
        """Return a sentence about the group, of which the first k ranks are components."""
        shown = [i + 1 for i in self.members if i < k]
        beyond = len(self.members) - len(shown)
        names = (
            f"component {shown[0]}" if len(shown) == 1 else f"components {shown[0]} to {shown[-1]}"
        )
        if len(shown) == 2:
            names = f"components {shown[0]} and {shown[1]}"
        others = f" from {beyond} further direction{'s'[: beyond - 1]}" if beyond else ""
        whose = "the span of all of them" if beyond else "their span"
        return (
            f"{names} cannot be separated{others} (variances agree to {self.spread:.1g}); "
            f"{whose} is within {self.angle:.2g} rad"
        )


@dataclass(frozen=True)
class Certificate:
    r"""How far to trust each of k components.

    Attributes
    ----------
    kind : {"certified", "conditional", "estimate"}
        *certified*: the components were measured on the whole data, and random probes bound what may have been
        missed, with `confidence`. *conditional*: measured, but nothing checked whether a larger direction was
        missed; bounds hold if none was. *estimate*: one pass without a second look; nothing is guaranteed.
    rayleigh : array of shape (k,)
        Rayleigh quotient of each component: its variance.
    residual : array of shape (k,)
        Length of $Mv_i - \theta_i v_i$ as computed, in the same unit.
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
    clusters : tuple of Cluster
        Groups of components that cannot be separated, but whose span is determined.
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

    @property
    def group_angle(self) -> np.ndarray:
        """Bound of each component, or of the cluster that contains it if that is smaller, shape (k,)."""
        found = self.angle.copy()
        for cluster in self.clusters:
            own = [i for i in cluster.members if i < len(found)]
            found[own] = np.minimum(found[own], cluster.angle)
        return found

    def streak(self, tol: float = math.pi / 8) -> int:
        """Return how many leading components are within `tol` radians by their own bound."""
        return int(np.cumprod(self.angle <= tol).sum())

    def within(self, tol: float) -> bool:
        """Return whether every component, or the cluster that contains it, is within `tol` radians."""
        return bool((self.group_angle <= tol).all())

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
            clusters=tuple(replace(one, gap=one.gap * factor) for one in self.clusters),
        )

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
        return "\n".join([*lines, *self.notes()])

    def notes(self) -> list[str]:
        """Return a sentence about each cluster."""
        return [cluster.describe(len(self.angle)) for cluster in self.clusters]


def certificate(
    players: Any,
    images: Any,
    k: int,
    *,
    floor: np.ndarray,
    scale: float = 1.0,
    level: float | None = None,
    confidence: float = 0.0,
    probes: int = 0,
    powers: int = 0,
    tol: float | None = None,
    ideal: bool = False,
) -> Certificate:
    """Return the certificate of the first k players from all players and their images.

    Parameters
    ----------
    players, images : arrays of shape (K, d)
        Nearly orthonormal players, and $M$ times each.
    k : int
        How many are components; the rest are extra players, whose values bound the last gap.
    floor : array of shape (K,)
        Bound on the error of each image (see `eigengame.solver.rounding`).
    scale : float
        What $M$ is divided by to be a covariance, for the figures that are variances.
    level : float, optional
        Bound on the largest eigenvalue outside the players, in the unit of $M$; minus infinity where nothing is
        outside. By default the last player's value and residual stand in for it.
    confidence, probes, powers
        Of the level.
    tol : float, optional
        Angle that is wanted: neighbours that rounding keeps from it are put into clusters.
    ideal : bool
        Whether to give the certificate that the players would have if they were settled exactly.
    """
    there = players.size > LARGE and not is_distributed(players)
    measured = (_measured_there if there else _measured)(players, images)
    turn = measured.turn
    if turn is None:
        return _unknown(measured, k, scale)
    gram = turn @ measured.gram @ turn.T
    if ideal:
        turn = eigh(gram)[1].T[::-1] @ turn
        gram = turn @ measured.gram @ turn.T
    values = np.diag(gram).copy()
    residual = np.sqrt(np.maximum(np.diag(turn @ measured.couplings @ turn.T), 0))
    # Inner products of images with players, and residuals, are rounded as well.
    floor = np.abs(turn) @ floor + 2 * gamma(sum(players.shape)) * (np.abs(values) + residual)
    outside = residual + floor
    rounding = (floor[:, None] + floor[None, :]) / 2
    off = np.zeros_like(gram) if ideal else np.abs(gram)
    np.fill_diagonal(off, 0)
    if level is None:
        # Without extra players nothing may be below the last one.
        level = float(values[-1] + outside[-1]) if len(values) > k else float(values[-1])
    # The matrix of rounding errors has at most this norm: each image is off by its floor.
    error = float(np.linalg.norm(floor))
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
        clusters=tuple(_clusters(block, best, angle, tol or INSEPARABLE, scale)),
    )


def stored(found: Certificate, settled: np.ndarray, kept: np.ndarray) -> Certificate:
    """Return the certificate of players as they are kept, from that of the settled ones: angles add up.

    Parameters
    ----------
    found : Certificate
        Of `settled`.
    settled, kept : arrays of shape (K, d)
        Players in float64, and the same rounded, or rotated.
    """
    k = len(found.angle)
    kept = np.asarray(kept, np.float64)
    turned = angular_error(kept[:k], settled[:k])
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
    one, other = (np.linalg.qr(rows.T)[0] for rows in (one, other))
    across = np.linalg.norm(one - other @ (other.T @ one), 2)
    return math.asin(min(float(across), 1.0))


def _clusters(
    block: Block, best: Block, angle: np.ndarray, limit: float, scale: float
) -> Iterator[Cluster]:
    """Give the groups that rounding keeps from being separated within `limit`, where their span is bounded.

    Parameters
    ----------
    block : Block
        As measured.
    best : Block
        As it would be if nothing but rounding were left.
    angle : array of shape (k,)
        Bounds of the components.
    limit : float
    scale : float
    """
    k, values = len(angle), block.values
    least = angle_bounds(best, k)
    lower, upper = block.lower, block.upper
    groups: list[tuple[int, int]] = []
    for i in np.flatnonzero(least > limit):
        if groups and i <= groups[-1][1]:
            continue
        group = _grown(best, int(i), limit)
        if group is None:
            continue
        while groups and groups[-1][1] >= group[0]:
            group = (min(groups.pop()[0], group[0]), group[1])
        groups.append(group)
    for first, last in groups:
        bound = span_bound(block, first, last)
        if bound >= angle[first : last + 1].max(initial=0):
            continue
        above = math.inf if first == 0 else lower[first - 1] - upper[first]
        below = lower[last] - (upper[last + 1] if last + 1 < len(values) else block.level)
        yield Cluster(
            members=tuple(range(first, last + 1)),
            angle=bound,
            gap=min(above, below) / scale,
            spread=float((values[first] - values[last]) / max(abs(values[first]), 1e-300)),
        )


def _grown(best: Block, i: int, limit: float) -> tuple[int, int] | None:
    """Return the smallest group around i, neighbour by neighbour, whose span rounding lets be within the limit."""
    first = last = i
    values, count = best.values, best.values.size
    while span_bound(best, first, last) > limit:
        up = values[first - 1] - values[first] if first > 0 else math.inf
        down = values[last] - values[last + 1] if last + 1 < count else math.inf
        if math.isinf(up) and math.isinf(down):
            return None
        first, last = (first - 1, last) if up <= down else (first, last + 1)
    return first, last


LARGE = 2**25
"""Numbers from which on players are measured where they are, in their own precision, summed in chunks."""


@dataclass(frozen=True)
class _Measured:
    """Small matrices of players V and images B.

    Attributes
    ----------
    gram : array of shape (K, K)
        $VB^T$, symmetric.
    turn : array of shape (K, K) or None
        $(VV^T)^{-1/2}$, which makes players orthonormal; None where they are too far from it.
    couplings : array of shape (K, K)
        Inner products of the residuals, of players as given.
    tilt : array of shape (K,)
        Angle of each player to the orthonormal one.
    gradient : array of shape (K,)
        Lengths of the Riemannian gradients.
    """

    gram: np.ndarray
    turn: np.ndarray | None
    couplings: np.ndarray
    tilt: np.ndarray
    gradient: np.ndarray


def _measured(players: Any, images: Any) -> _Measured:
    """Return inner products and lengths, in float64."""
    v, mv = gather(players).astype(np.float64), gather(images).astype(np.float64)
    gram, turn, tilt, inside = _small(v @ v.T, v @ mv.T)
    residuals = mv - inside @ v
    gradient = 2 * _coefficients(gram).T @ mv
    gradient -= np.sum(gradient * v, axis=1, keepdims=True) * v
    lengths = np.linalg.norm(gradient, axis=1)
    return _Measured(gram, turn, residuals @ residuals.T, tilt, lengths)


def _measured_there(players: Any, images: Any) -> _Measured:
    """On-device version of `_measured`, for players too large to copy: only small matrices leave the device."""
    v, mv = jnp.asarray(players), jnp.asarray(images)
    product, overlaps = (np.asarray(measured_product(v, one), np.float64) for one in (mv, v))
    gram, turn, tilt, inside = _small(overlaps, product)
    small = jnp.asarray(inside, v.dtype), jnp.asarray(2 * _coefficients(gram).T, v.dtype)
    couplings, lengths = _couplings_there(v, mv, *small)
    lengths = np.asarray(lengths, np.float64)
    return _Measured(gram, turn, np.asarray(couplings, np.float64), tilt, lengths)


def _small(
    overlaps: np.ndarray, product: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Return gram, turn, tilt, and the coefficients (K, K) of each image's part within the players."""
    gram = (product + product.T) / 2
    sizes, axes = eigh(overlaps)
    if not sizes[0] > 0.5:
        return gram, None, np.full(len(gram), math.pi / 2), gram
    turn, back = ((axes * sizes**power) @ axes.T for power in (-0.5, 0.5))
    along = np.diag(back).copy()
    tilt = np.arctan2(np.linalg.norm(back - np.diag(along), axis=1), along)
    return gram, turn, tilt, product.T @ turn @ turn


@jit_without_autotune
def _couplings_there(
    v: jax.Array, mv: jax.Array, inside: jax.Array, steps: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return inner products of residuals, and lengths of gradients that these steps make of images."""
    residuals = mv - full_product(inside, v)
    gradient = project_tangent(v, full_product(steps, mv))
    return long_product(residuals, residuals), safe_norms(gradient)


def _coefficients(gram: np.ndarray) -> np.ndarray:
    """Return what images make up each player's gradient (eq. ui_grad), shape (K, K)."""
    rewards = np.where(np.diag(gram) > 0, np.diag(gram), 1)
    return np.eye(len(gram)) - np.triu(gram / rewards[:, None], 1)


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


def _unknown(measured: _Measured, k: int, scale: float) -> Certificate:
    """Return the certificate of players that are too far from orthonormal to say anything."""
    values = np.diag(measured.gram)
    right, unknown = np.full(k, math.pi / 2), np.full(k, np.nan)
    return Certificate(
        "conditional", values[:k] / scale, unknown, unknown, right, 0.0, 0.0, right,
        _penalty_ratio(measured.gram, k),
    )  # fmt: skip
