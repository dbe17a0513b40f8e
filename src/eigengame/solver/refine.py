"""Refinement: further passes over the data, until the certificate meets the tolerance.

Passes that improve the players run in the precision of the updates, and their bounds include its rounding. When the
bounds meet the tolerance, random probes search for missed directions. If only rounding prevents this, because
components are close or the tolerance is small, the players are first measured and rotated once more in float64
(`float64_products`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.orthonormal import orthonormalise
from eigengame.sharding.gather import whole
from eigengame.solver import float64_products as measuring
from eigengame.solver.certificate import Certificate, certificate, stored
from eigengame.solver.moments import Moments
from eigengame.solver.outcome import Outcome, Status
from eigengame.solver.passes import Passes
from eigengame.solver.probes import draw_probes, powered
from eigengame.solver.products import Imaged, Refined, image, improve, measure
from eigengame.solver.rounding import Rounding

PROBES = 16
"""Number of random directions that search for missed ones."""

RISK = 1e-3
"""Probability that they miss one."""

MOST_PRECISE = 2**27
"""Largest size of players that are measured in float64 on the host: 1 GiB."""

DEVICE_BYTES = 2**30
"""Bytes that rows, players and products may take in float64 on a device that computes the rows."""


class Refinement(NamedTuple):
    """Refined players.

    Attributes
    ----------
    players : array of shape (K, d)
        The first k are the components.
    certificate : Certificate
    outcome : Outcome
    """

    players: np.ndarray
    certificate: Certificate
    outcome: Outcome


@dataclass(frozen=True)
class Goal:
    """The goal of a refinement, and the data it works on.

    Attributes
    ----------
    passes : Passes
    mean : array of shape (d,) or None
        Mean about which M is taken.
    k : int
        Number of components.
    scale : float
        Divisor of M for a covariance.
    max_passes : int
        Largest number of passes, those already made included.
    tol : float or None
        Largest angle; None uses all passes.
    seed : int
        Seed of the probes.
    rounding : Rounding
        Rounding of products in the precision of the updates.
    in_float64 : bool
        Whether rows can also be read in float64. Players that are small enough are then measured in it.
    """

    passes: Passes
    mean: jax.Array | None
    k: int
    scale: float
    max_passes: int
    tol: float | None
    seed: int
    rounding: Rounding
    in_float64: bool = True

    def certify(self, now: Refined, **level: Any) -> Certificate:
        """Return the certificate of the players, from products in the precision of the updates."""
        players, images = now.players
        floor = self.rounding.of_products(_values(players, images))
        return certificate(
            players, images, self.k, floor=floor, scale=self.scale, tol=self.tol, **level
        )

    def ideal(self, now: Refined) -> Certificate:
        """Return the certificate that the players would have without rounding errors.

        It guides the passes, because a measurement in float64 can achieve it. For players that cannot be measured
        in float64 it is their certificate.
        """
        if not self.in_float64 or now.players.directions.size > MOST_PRECISE:
            return self.certify(now)
        none = np.zeros(len(now.players.directions))
        return certificate(
            *now.players, self.k, floor=none, scale=self.scale, tol=self.tol, ideal=True
        )

    def met(self, found: Certificate) -> bool:
        """Return whether every component, or its cluster, is within tol by its bound."""
        return self.tol is not None and found.within(self.tol)


class Checked(NamedTuple):
    """Players with a certificate after a search for missed directions.

    Attributes
    ----------
    certificate : Certificate
    players : array of shape (K, d)
        Rotated to the eigenvectors of M within their span.
    used : int
        Passes used so far.
    """

    certificate: Certificate
    players: np.ndarray
    used: int


def refine(goal: Goal, players: jax.Array, *, route: str, used: int) -> Refinement:
    """Refine the players by further passes, after `used` passes already made."""
    now = measure(goal.passes, players, goal.mean)
    best, ideal, used = now, goal.ideal(now), used + 1
    checked: Checked | None = None
    spent = Status.PASSES_MADE if goal.tol is None else Status.PASSES_SPENT
    status: Status | None = spent
    aim, looks = goal, 0
    while True:
        best, ideal, used, floor = _improved(aim, best, ideal, used)
        if used >= goal.max_passes or goal.passes.stopped or not (aim.met(ideal) or floor):
            break
        looks += 1
        # Without clusters: components that float32 cannot separate, float64 usually can.
        plain = aim.tol is not None and bool((goal.certify(best).angle <= aim.tol).all())
        checked = check(goal, best, used, looks, precise=not plain)
        used = checked.used
        status = _status(
            goal, checked.certificate, spent if used >= goal.max_passes else None, floor
        )
        worst = float(np.max(checked.certificate.group_angle))
        if status is not None or goal.passes.stopped:
            break
        # The probes allow larger missed directions than assumed: smaller residuals compensate.
        assert goal.tol is not None
        assert aim.tol is not None
        status, aim = spent, replace(goal, tol=aim.tol * 0.5 * goal.tol / worst)
    if goal.passes.stopped:
        status = Status.STOPPED
    if checked is None:
        checked = Checked(goal.certify(best), whole(best.players.directions), used)
    outcome = Outcome(status or spent, route, used)
    return Refinement(checked.players, checked.certificate, outcome)


def _status(goal: Goal, found: Certificate, spent: Status | None, floor: bool) -> Status | None:
    """Return the status after a check, or None if further passes can help.

    `spent` is the status if no passes are left; `floor` is whether players cannot be improved.
    """
    if (converged := converged_status(found, goal.tol)) is not None:
        return converged
    if floor:
        return Status.FLOOR_REACHED
    if spent is not None:
        return spent
    hopeless = found.kind != "certified" or float(np.max(found.group_angle)) >= math.pi / 2
    return Status.UNPROVEN if hopeless else None


def converged_status(found: Certificate, tol: float | None) -> Status | None:
    """Return the status of a certificate that meets the tolerance, by components or by clusters; else None."""
    if found.kind != "certified" or tol is None or not found.within(tol):
        return None
    return Status.CONVERGED if (found.angle <= tol).all() else Status.CONVERGED_IN_CLUSTERS


def _improved(
    goal: Goal, best: Refined, found: Certificate, used: int
) -> tuple[Refined, Certificate, int, bool]:
    """Make passes until the ideal certificate meets the goal, passes run out, or rounding prevents progress.

    Returns the best players, their ideal certificate, the passes used, and whether rounding ended it.
    """
    now, stalled, dtype = best, 0, best.players.directions.dtype
    while used < goal.max_passes and not goal.met(found) and not goal.passes.stopped:
        now, used = improve(goal.passes, now, goal.mean), used + 1
        after = goal.ideal(now)
        stalled = 0 if _improved_enough(found, after) else stalled + 1
        if _merit(after) < _merit(found):
            best, found = now, after
        if stalled >= 2 and _at_floor(found, dtype):
            return best, found, used, True
    return best, found, used, False


def check(goal: Goal, now: Refined, used: int, look: int = 1, *, precise: bool = True) -> Checked:
    """Certify players after a search for missed directions.

    Parameters
    ----------
    goal : Goal
    now : Refined
    used : int
        Passes used so far.
    look : int
        Number of this search. Each has its own probes and a share of the risk, and all shares add up to the risk.
    precise : bool
        Whether to measure the players once more in float64, if possible. Players in float64 always are.
    """
    players, dtype = now.players.directions, now.players.directions.dtype
    possible = goal.in_float64 and players.size <= MOST_PRECISE
    if not possible or (dtype != np.float64 and not precise):
        found, used = _check_on_device(goal, now, used, look)
        return Checked(found, whole(players), used)
    start = measuring.orthonormal(whole(players))
    found, settled, used = _checked(goal, start, used, look, dtype)
    return Checked(found, settled.astype(dtype), used)


def share_of_risk(look: int) -> float:
    """Return the risk of a search: 1/2, 1/6, 1/12, ... of the risk, which add up to it."""
    return RISK / (look * (look + 1))


def _checked(
    goal: Goal,
    players: np.ndarray,
    used: int,
    look: int,
    dtype: Any,
    kept: np.ndarray | None = None,
) -> tuple[Certificate, np.ndarray, int]:
    """Return certificate, rotated players and passes used, by passes in float64.

    Parameters
    ----------
    players : array of shape (K, d)
        Orthonormal in float64.
    dtype : dtype
        Precision in which the players are stored.
    kept : array of shape (K, d), optional
        Players to certify instead of the rotated ones.
    """
    count, d = players.shape
    everything, risk = count == d, share_of_risk(look)
    mean = None if goal.mean is None else whole(goal.mean).astype(np.float64)
    probes = None if everything else draw_probes(goal.seed + look, PROBES, players)
    block = players if probes is None else np.concatenate([players, probes.directions])
    measured = measuring.products(goal.passes, block, mean)
    own = measuring.Products(
        players, measured.images[:count], measured.floor[:count], measured.rounding
    )
    settled, used = measuring.rotated(own), used + 1
    held = settled.directions.astype(dtype) if kept is None else kept
    # Of players and probes: the first player has the largest value.
    error = float(measured.floor.max())

    def certified(level: float, confidence: float, powers: int) -> Certificate:
        found = certificate(
            settled.directions,
            settled.images,
            goal.k,
            floor=settled.floor,
            scale=goal.scale,
            level=level,
            confidence=confidence,
            probes=PROBES if powers else 0,
            powers=powers,
            tol=goal.tol,
        )
        return stored(found, settled.directions, held)

    if probes is None:
        return certified(-math.inf, 1.0, 0), settled.directions, used
    images = measured.images[count:]
    while True:
        before = probes.level
        probes = powered(probes, images, settled.directions, risk=risk, error=error)
        found = certified(probes.level, 1 - RISK, probes.powers)
        enough = goal.met(found) or probes.level > 0.98 * before
        if enough or used >= goal.max_passes or goal.passes.stopped:
            return found, settled.directions, used
        again = measuring.products(goal.passes, probes.directions, mean, "probes")
        images, error, used = again.images, max(error, float(again.floor.max())), used + 1


def _check_on_device(goal: Goal, now: Refined, used: int, look: int) -> tuple[Certificate, int]:
    """On-device version of `_checked`, in the precision of the updates."""
    players, risk = now.players.directions, share_of_risk(look)
    if players.shape[0] == players.shape[1]:  # nothing lies outside
        return goal.certify(now, level=-math.inf, confidence=1.0), used
    error = float(goal.rounding.of_products(_values(*now.players)).max())
    probes, found = draw_probes(goal.seed + look, PROBES, players), goal.certify(now)
    while used < goal.max_passes and not goal.passes.stopped:
        before = probes.level
        images = image(goal.passes, probes.directions, goal.mean, "probes")
        probes, used = powered(probes, images, players, risk=risk, error=error), used + 1
        found = goal.certify(
            now, level=probes.level, confidence=1 - RISK, probes=PROBES, powers=probes.powers
        )
        if goal.met(found) or probes.level > 0.98 * before:
            break
    return found, used


def certify(goal: Goal, players: np.ndarray) -> Certificate:
    """Certify given players on the data by at most `goal.max_passes` passes.

    Measuring rotates the players on this data. The bound is that of the players as given: the bound of the rotated
    ones plus the angle between the two.
    """
    aim = replace(goal, tol=None)
    if goal.in_float64 and players.size <= MOST_PRECISE:
        start = measuring.orthonormal(players)
        return _checked(aim, start, 0, 1, players.dtype, kept=players)[0]
    now = measure(goal.passes, jnp.asarray(players), goal.mean)
    found, _ = _check_on_device(aim, now, 1, 1)
    return stored(found, whole(now.players.directions).astype(np.float64), players)


def certify_by_one_pass(goal: Goal, players: np.ndarray) -> Certificate:
    """Return the conditional certificate of players by one pass, without rotating them.

    They need not be orthonormal: orthonormal players of the same span are measured.
    """
    if goal.in_float64 and players.size <= MOST_PRECISE:
        start = measuring.orthonormal(players)
        mean = None if goal.mean is None else whole(goal.mean).astype(np.float64)
        measured = measuring.products(goal.passes, start, mean)
        found = certificate(start, measured.images, goal.k, floor=measured.floor, scale=goal.scale)
        return stored(found, start, players)
    there = orthonormalise(jnp.asarray(players))
    found = goal.certify(Refined(Imaged(there, image(goal.passes, there, goal.mean, "measuring"))))
    return stored(found, whole(there).astype(np.float64), players)


def _values(players: Any, images: Any) -> np.ndarray:
    """Return the Rayleigh quotient of each player, shape (K,)."""
    if isinstance(players, np.ndarray):
        return np.sum(players * images, axis=1)
    return whole(_quotients(players, images)).astype(np.float64)


@jax.jit
def _quotients(players: jax.Array, images: jax.Array) -> jax.Array:
    return jnp.sum(players * images, axis=1)


def _merit(found: Certificate) -> tuple[float, float]:
    """Return the largest bound, and the largest residual relative to its variance."""
    # Relative to its own variance: a much larger first component would hide progress of the others.
    least = float(np.finfo(np.float32).eps) * max(float(found.rayleigh[0]), 1e-300)
    unsettled = found.residual / np.maximum(found.rayleigh, least)
    return float(np.max(found.group_angle)), float(np.max(unsettled))


def _improved_enough(before: Certificate, after: Certificate) -> bool:
    """Return whether a pass reduced the worst bound or residual by 20 %."""
    pairs = zip(_merit(before), _merit(after), strict=True)
    return any(new < 0.8 * old for old, new in pairs)


def _at_floor(found: Certificate, dtype: Any) -> bool:
    """Return whether residuals are down to what the dtype can resolve."""
    floor = 1e3 * float(jnp.finfo(dtype).eps) * found.rayleigh[0]
    return bool(np.median(found.residual) <= floor)


def play_rounding(passes: Passes, moments: Moments, rows: int, dtype: Any) -> Rounding:
    """Return the rounding of products in the precision of the updates."""
    mean, scatter = (whole(one).astype(np.float64) for one in (moments.mean, moments.scatter))
    squares = float(scatter.sum() + float(moments.weight) * np.sum(mean**2))
    d, size = passes.source.shape[1], passes.size
    return Rounding.probable(dtype, d, size, rows / size, squares)


def measures_in_float64(passes: Passes, players: int) -> bool:
    """Return whether rows can be read in float64: rows on a device must leave memory for wider ones."""
    source, d = passes.source, passes.source.shape[1]
    return not source.on_device or 8 * d * (passes.size + 4 * players) <= DEVICE_BYTES
