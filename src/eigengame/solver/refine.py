"""Refinement: further passes over data that can be read again, until the certificate holds.

Passes that improve the players run in the precision of play, and their bounds include its rounding. When the bounds
meet the tolerance, probes look for what was missed. If rounding alone stands in the way, because components are
close or the tolerance is small, the players are first measured and settled once more in float64
(`eigengame.solver.float64_products`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.orthonormal import orthonormalise
from eigengame.sharding.gather import gather
from eigengame.solver import float64_products as measuring
from eigengame.solver.certificate import Certificate, certificate, stored
from eigengame.solver.outcome import Outcome, Status
from eigengame.solver.passes import Passes
from eigengame.solver.probes import draw_probes, powered
from eigengame.solver.products import Imaged, Refined, image, improve, measure
from eigengame.solver.rounding import Rounding

PROBES = 16
"""Random directions that look for what was missed."""

RISK = 1e-3
"""The chance that they miss it."""

MOST_PASSES = 30
"""Passes that `tol` may take where no number is given."""

MOST_PRECISE = 2**27
"""Numbers of players up to which they are measured in float64, on the host: 1 GiB."""


class Found(NamedTuple):
    """What a fit leaves behind, in the unit of the scatter matrix M.

    Attributes
    ----------
    components : array of shape (k, d)
    strengths : array of shape (k,)
    certificate : Certificate
    outcome : Outcome
    players : array of shape (K, d)
        Components and extra players.
    """

    components: np.ndarray
    strengths: np.ndarray
    certificate: Certificate
    outcome: Outcome
    players: np.ndarray


@dataclass(frozen=True)
class Goal:
    """What refinement works towards, and on what.

    Attributes
    ----------
    source : Passes
        What is read.
    mean : array of shape (d,) or None
        What M is taken about.
    k : int
        How many of the players are components.
    scale : float
        What M is divided by to be a covariance.
    passes : int
        How often the data may have been read at the end.
    tol : float or None
        The angle wanted; None spends all passes.
    seed : int
        Seed of the probes.
    rounding : Rounding
        Of products in the precision of play.
    in_float64 : bool
        Whether rows can be read in float64 as well; where players are few enough, they are then measured so.
    """

    source: Passes
    mean: jax.Array | None
    k: int
    scale: float
    passes: int
    tol: float | None
    seed: int
    rounding: Rounding
    in_float64: bool = True

    def certify(self, now: Refined, **level: Any) -> Certificate:
        """Return the certificate of the players as they are, from products in the precision of play."""
        players, images = now.players
        floor = self.rounding.of_products(_values(players, images))
        return certificate(
            players, images, self.k, floor=floor, scale=self.scale, tol=self.tol, **level
        )

    def hope(self, now: Refined) -> Certificate:
        """Return the certificate that the players would have if they were settled without rounding errors.

        It guides the passes: float64 can make it true. Players that cannot be measured in float64 have no more to
        hope for than their certificate.
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
    """Players that were measured and looked around from.

    Attributes
    ----------
    certificate : Certificate
    players : array of shape (K, d)
        Settled, as they are kept.
    used : int
        Passes used so far.
    """

    certificate: Certificate
    players: np.ndarray
    used: int


def refined(goal: Goal, players: jax.Array, *, route: str, used: int) -> Found:
    """Return what further passes make of the players, after `used` passes already made."""
    now = measure(goal.source, players, goal.mean)
    best, hoped, used = now, goal.hope(now), used + 1
    checked: Checked | None = None
    spent = Status.PASSES_MADE if goal.tol is None else Status.PASSES_SPENT
    status: Status | None = spent
    aim, looks = goal, 0
    while True:
        best, hoped, used, floor = _improved(aim, best, hoped, used)
        if used >= goal.passes or goal.source.stopped or not (aim.met(hoped) or floor):
            break
        looks += 1
        # By themselves, not by clusters: what float32 cannot separate, float64 usually can.
        plain = aim.tol is not None and bool((goal.certify(best).angle <= aim.tol).all())
        checked = check(goal, best, used, looks, precise=not plain)
        used = checked.used
        status = _status(goal, checked.certificate, spent if used >= goal.passes else None, floor)
        worst = float(np.max(checked.certificate.group_angle))
        if status is not None or goal.source.stopped:
            break
        # What the probes allow to lie outside is more than was assumed: smaller residuals make up for it.
        assert goal.tol is not None
        assert aim.tol is not None
        status, aim = spent, replace(goal, tol=aim.tol * 0.5 * goal.tol / worst)
    if goal.source.stopped:
        status = Status.STOPPED
    if checked is None:
        checked = Checked(goal.certify(best), gather(best.players.directions), used)
    found, kept, _ = checked
    outcome = Outcome(status or spent, route, used)
    return Found(kept[: goal.k], found.rayleigh * goal.scale, found, outcome, kept)


def _status(goal: Goal, found: Certificate, spent: Status | None, floor: bool) -> Status | None:
    """Return how a fit ends after a check, or None if further passes can help.

    `spent` is the outcome where no passes are left; `floor` says that players cannot be improved.
    """
    if (converged := status_of(found, goal.tol)) is not None:
        return converged
    if floor:
        return Status.FLOOR_REACHED
    if spent is not None:
        return spent
    hopeless = found.kind != "certified" or float(np.max(found.group_angle)) >= math.pi / 2
    return Status.UNPROVEN if hopeless else None


def status_of(found: Certificate, tol: float | None) -> Status | None:
    """Return the outcome of a certificate that meets the tolerance, by itself or by clusters; else None."""
    if found.kind != "certified" or tol is None or not found.within(tol):
        return None
    return Status.CONVERGED if (found.angle <= tol).all() else Status.CONVERGED_IN_CLUSTERS


def _improved(
    goal: Goal, best: Refined, found: Certificate, used: int
) -> tuple[Refined, Certificate, int, bool]:
    """Return the best players on the way to the goal, their hope, and whether the floor of the dtype ended it."""
    now, stalled, dtype = best, 0, best.players.directions.dtype
    while used < goal.passes and not goal.met(found) and not goal.source.stopped:
        now, used = improve(goal.source, now, goal.mean), used + 1
        after = goal.hope(now)
        stalled = 0 if _went_on(found, after) else stalled + 1
        if _merit(after) < _merit(found):
            best, found = now, after
        if stalled >= 2 and _at_floor(found, dtype):
            return best, found, used, True
    return best, found, used, False


def check(goal: Goal, now: Refined, used: int, look: int = 1, *, precise: bool = True) -> Checked:
    """Return players with their certificate after probes looked for what was missed.

    Parameters
    ----------
    goal : Goal
    now : Refined
    used : int
        Passes used so far.
    look : int
        Which look of the fit this is. Each has probes of its own and a share of the risk: all looks together
        stay within it.
    precise : bool
        Whether to measure the players once more in float64, if that can be done. Players in float64 always are.
    """
    players, dtype = now.players.directions, now.players.directions.dtype
    possible = goal.in_float64 and players.size <= MOST_PRECISE
    if not possible or (dtype != np.float64 and not precise):
        found, used = _check_there(goal, now, used, look)
        return Checked(found, gather(players), used)
    start = measuring.orthonormal(gather(players))
    found, settled, used = _checked(goal, start, used, look, dtype)
    return Checked(found, settled.astype(dtype), used)


def share_of_risk(look: int) -> float:
    """Return the risk that a look may take: 1/2, 1/6, 1/12, ... of all, which add up to it."""
    return RISK / (look * (look + 1))


def _checked(
    goal: Goal,
    players: np.ndarray,
    used: int,
    look: int,
    dtype: Any,
    kept: np.ndarray | None = None,
) -> tuple[Certificate, np.ndarray, int]:
    """Return certificate, settled players and passes used, by passes in float64.

    Parameters
    ----------
    players : array of shape (K, d)
        Orthonormal in float64.
    dtype : dtype
        That settled players are rounded to when they are kept.
    kept : array of shape (K, d), optional
        Players to certify instead of the settled ones.
    """
    count, d = players.shape
    everything, risk = count == d, share_of_risk(look)
    mean = None if goal.mean is None else gather(goal.mean).astype(np.float64)
    probes = None if everything else draw_probes(goal.seed + look, PROBES, players)
    block = players if probes is None else np.concatenate([players, probes.directions])
    measured = measuring.products(goal.source, block, mean)
    own = measuring.Products(
        players, measured.images[:count], measured.floor[:count], measured.rounding
    )
    settled, used = measuring.settled(own), used + 1
    held = settled.directions.astype(dtype) if kept is None else kept
    # Of players and probes: the first player has the largest value there is.
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
        if enough or used >= goal.passes or goal.source.stopped:
            return found, settled.directions, used
        again = measuring.products(goal.source, probes.directions, mean, "probes")
        images, error, used = again.images, max(error, float(again.floor.max())), used + 1


def _check_there(goal: Goal, now: Refined, used: int, look: int) -> tuple[Certificate, int]:
    """Version of `_checked` for players that stay on the device, in the precision of play."""
    players, risk = now.players.directions, share_of_risk(look)
    if players.shape[0] == players.shape[1]:  # nothing lies outside
        return goal.certify(now, level=-math.inf, confidence=1.0), used
    error = float(goal.rounding.of_products(_values(*now.players)).max())
    probes, found = draw_probes(goal.seed + look, PROBES, players), goal.certify(now)
    while used < goal.passes and not goal.source.stopped:
        before = probes.level
        images = image(goal.source, probes.directions, goal.mean, "probes")
        probes, used = powered(probes, images, players, risk=risk, error=error), used + 1
        found = goal.certify(
            now, level=probes.level, confidence=1 - RISK, probes=PROBES, powers=probes.powers
        )
        if goal.met(found) or probes.level > 0.98 * before:
            break
    return found, used


def certify(goal: Goal, players: np.ndarray) -> Certificate:
    """Return the certificate of given players on the data, by at most `goal.passes` passes.

    Measuring settles the players on this data. What is bounded is the angle of the players as given: the bound
    of the settled ones and the angle between the two.
    """
    aim = replace(goal, tol=None)
    if goal.in_float64 and players.size <= MOST_PRECISE:
        start = measuring.orthonormal(players)
        return _checked(aim, start, 0, 1, players.dtype, kept=players)[0]
    now = measure(goal.source, jnp.asarray(players), goal.mean)
    found, _ = _check_there(aim, now, 1, 1)
    return stored(found, gather(now.players.directions).astype(np.float64), players)


def measured_only(goal: Goal, players: np.ndarray) -> Certificate:
    """Return the conditional certificate of players as they are, by one pass: they are not settled.

    They need not be orthonormal: what is measured are orthonormal players of the same span.
    """
    if goal.in_float64 and players.size <= MOST_PRECISE:
        start = measuring.orthonormal(players)
        mean = None if goal.mean is None else gather(goal.mean).astype(np.float64)
        measured = measuring.products(goal.source, start, mean)
        found = certificate(start, measured.images, goal.k, floor=measured.floor, scale=goal.scale)
        return stored(found, start, players)
    there = orthonormalise(jnp.asarray(players))
    found = goal.certify(Refined(Imaged(there, image(goal.source, there, goal.mean, "measuring"))))
    return stored(found, gather(there).astype(np.float64), players)


def _values(players: Any, images: Any) -> np.ndarray:
    """Return the Rayleigh quotient of each player, shape (K,)."""
    if isinstance(players, np.ndarray):
        return np.sum(players * images, axis=1)
    return gather(_quotients(players, images)).astype(np.float64)


@jax.jit
def _quotients(players: jax.Array, images: jax.Array) -> jax.Array:
    return jnp.sum(players * images, axis=1)


def _merit(found: Certificate) -> tuple[float, float]:
    """Return the largest bound, and the largest residual relative to its variance where no bound holds yet."""
    # Each by its own size: beside a first component that is much larger, no other would seem to move.
    least = float(np.finfo(np.float32).eps) * max(float(found.rayleigh[0]), 1e-300)
    unsettled = found.residual / np.maximum(found.rayleigh, least)
    return float(np.max(found.group_angle)), float(np.max(unsettled))


def _went_on(before: Certificate, after: Certificate) -> bool:
    """Return whether a pass reduced the worst bound or residual by 20 %."""
    pairs = zip(_merit(before), _merit(after), strict=True)
    return any(new < 0.8 * old for old, new in pairs)


def _at_floor(found: Certificate, dtype: Any) -> bool:
    """Return whether residuals are down to what the dtype can resolve."""
    floor = 1e3 * float(jnp.finfo(dtype).eps) * found.rayleigh[0]
    return bool(np.median(found.residual) <= floor)
