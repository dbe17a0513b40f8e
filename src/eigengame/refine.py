"""Refinement: further passes over data that can be read again, until the certificate holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.certificate import Certificate, certificate
from eigengame.images import Refined, improve, measure
from eigengame.metrics import angular_error
from eigengame.outcome import Ending, Outcome
from eigengame.parallel.gather import whole
from eigengame.probes import draw_probes, power_probes
from eigengame.reading import Passes

PROBES = 16
"""Random directions that look for what was missed."""

RISK = 1e-3
"""The chance that they miss it."""

MOST_PASSES = 30
"""Passes that `tol` may take where no number is given."""


class Found(NamedTuple):
    """What a fit leaves behind, in the unit of the scatter matrix M.

    Attributes
    ----------
    components : array of shape (k, d)
    strengths : array of shape (k,)
    certificate : Certificate
    ending : Ending
    players : array of shape (K, d)
        Components and extra players.
    """

    components: np.ndarray
    strengths: np.ndarray
    certificate: Certificate
    ending: Ending
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
    """

    source: Passes
    mean: jax.Array | None
    k: int
    scale: float
    passes: int
    tol: float | None
    seed: int

    def certify(self, now: Refined, **level: Any) -> Certificate:
        """Return the certificate of the players as they are."""
        return certificate(*now.players, self.k, scale=self.scale, **level)

    def met(self, found: Certificate) -> bool:
        """Say whether every component is within tol by its bound."""
        return self.tol is not None and bool((found.angle <= self.tol).all())


def refined(goal: Goal, players: jax.Array, *, route: str, used: int) -> Found:
    """Return what further passes make of the players, after `used` passes already made."""
    now = measure(goal.source, players, goal.mean)
    best, found, used = now, goal.certify(now), used + 1
    spent = Outcome.PASSES_MADE if goal.tol is None else Outcome.PASSES_SPENT
    outcome, aim, looks = spent, goal, 0
    while True:
        best, found, used, floor = _improved(aim, best, found, used)
        if not aim.met(found) or goal.source.stopped:
            outcome = Outcome.FLOOR_REACHED if floor else spent
            outcome = Outcome.STOPPED if goal.source.stopped else outcome
            break
        looks += 1
        proven, used = checked(goal, best, used, looks)
        worst = float(np.max(proven.angle))
        if proven.kind == "certified" and goal.met(proven):
            found, outcome = proven, Outcome.CONVERGED
            break
        if used >= goal.passes or proven.kind != "certified" or worst >= math.pi / 2:
            found, outcome = proven, spent if used >= goal.passes else Outcome.UNPROVEN
            break
        # What the probes allow to lie outside is more than was assumed: smaller residuals make up for it.
        assert goal.tol is not None
        assert aim.tol is not None
        aim = replace(goal, tol=aim.tol * 0.5 * goal.tol / worst)
    final = whole(best.players.directions)
    ending = Ending(outcome, route, used)
    return Found(final[: goal.k], found.rayleigh * goal.scale, found, ending, final)


def _improved(
    goal: Goal, best: Refined, found: Certificate, used: int
) -> tuple[Refined, Certificate, int, bool]:
    """Return the best players on the way to the goal, and whether the floor of the dtype ended it."""
    now, stalled, dtype = best, 0, best.players.directions.dtype
    while used < goal.passes and not goal.met(found) and not goal.source.stopped:
        now, used = improve(goal.source, now, goal.mean), used + 1
        after = goal.certify(now)
        stalled = 0 if _went_on(found, after) else stalled + 1
        if _merit(after) < _merit(found):
            best, found = now, after
        if stalled >= 2 and _at_floor(found, dtype):
            return best, found, used, True
    return best, found, used, False


def checked(goal: Goal, now: Refined, used: int, look: int = 1) -> tuple[Certificate, int]:
    """Return the certificate after probes looked for what was missed, and the passes used.

    Each look has probes of its own and a share of the risk, 1/2, 1/6, 1/12, ...: all looks together
    stay within it.
    """
    players = now.players.directions
    if players.shape[0] == players.shape[1]:  # nothing lies outside
        return goal.certify(now, level=0.0, confidence=1.0), used
    risk = RISK / (look * (look + 1))
    probes, found = draw_probes(goal.seed + look, PROBES, players), goal.certify(now)
    while used < goal.passes and not goal.source.stopped:
        before = probes.level
        probes = power_probes(goal.source, probes, players, goal.mean, risk)
        used += 1
        found = goal.certify(
            now, level=probes.level, confidence=1 - RISK, probes=PROBES, powers=probes.powers
        )
        if goal.met(found) or probes.level > 0.98 * before:
            break
    return found, used


def certify(goal: Goal, players: jax.Array) -> Certificate:
    """Return the certificate of given players on the data: one pass to measure, the rest to check.

    Measuring settles the players on this data. What is bounded is the angle of the players as given:
    the bound of the settled ones and the angle between the two.
    """
    now = measure(goal.source, players, goal.mean)
    found, _ = checked(replace(goal, tol=None), now, 1)
    given, settled = (whole(one).astype(np.float64) for one in (players, now.players.directions))
    turned = angular_error(given[: goal.k], settled[: goal.k])
    return replace(found, angle=np.minimum(found.angle + turned, math.pi / 2))


def _merit(found: Certificate) -> tuple[float, float]:
    """Return how far the worst component may be off and, where no bound holds yet, how far it is from settled."""
    # Each by its own size: beside a first component that is much larger, no other would seem to move.
    least = float(np.finfo(np.float32).eps) * max(float(found.rayleigh[0]), 1e-300)
    unsettled = found.residual / np.maximum(found.rayleigh, least)
    return float(np.max(found.angle)), float(np.max(unsettled))


def _went_on(before: Certificate, after: Certificate) -> bool:
    """Say whether a pass took a good part off the worst component's bound, or off what it is from settled."""
    pairs = zip(_merit(before), _merit(after), strict=True)
    return any(new < 0.8 * old for old, new in pairs)


def _at_floor(found: Certificate, dtype: Any) -> bool:
    """Say whether residuals are down to what the dtype can resolve."""
    floor = 1e3 * float(jnp.finfo(dtype).eps) * found.rayleigh[0]
    return bool(np.median(found.residual) <= floor)
