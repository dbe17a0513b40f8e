"""Refinement of players that are too large for the host: everything stays on the device, in its precision.

Passes improve the players until their bounds meet the tolerance. Then random probes, drawn for the players as they
are, search for missed directions by passes of their own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sharding.gather import gather
from eigengame.solver.certificates.certificate import Certificate, certificate
from eigengame.solver.certificates.device_probes import draw_probes, powered
from eigengame.solver.certificates.risk import RISK, share_of_risk
from eigengame.solver.refinement.goal import Goal
from eigengame.solver.refinement.products import Refined, image, improve, measure
from eigengame.solver.results.outcome import Outcome, Status, converged_status

PROBES = 16
"""Number of random directions that search for missed ones."""


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


def refine_on_device(goal: Goal, players: jax.Array, *, route: str, used: int) -> Refinement:
    """Refine players that are too large for the host by further passes, after `used` passes already made."""
    now = measure(goal.passes, players, goal.mean)
    best, found, used = now, measured_certificate(goal, now), used + 1
    checked: Certificate | None = None
    spent = Status.PASSES_MADE if goal.tol is None else Status.PASSES_SPENT
    status: Status | None = spent
    aim, looks = goal, 0
    while True:
        best, found, used, floor = _improved(aim, best, found, used)
        if used >= goal.max_passes or goal.passes.stopped or not (aim.met(found) or floor):
            break
        looks += 1
        checked, used = search(goal, best, used, looks)
        status = _status(goal, checked, spent if used >= goal.max_passes else None, floor)
        worst = float(np.max(checked.group_angle[: goal.determined], initial=0))
        if status is not None or goal.passes.stopped:
            break
        # The probes allow larger missed directions than assumed: smaller residuals compensate.
        assert goal.tol is not None
        assert aim.tol is not None
        status, aim = spent, replace(goal, tol=aim.tol * 0.5 * goal.tol / worst)
    if goal.passes.stopped:
        status = Status.STOPPED
    if checked is None:
        checked = measured_certificate(goal, best)
    outcome = Outcome(status or spent, route, used)
    return Refinement(gather(best.players.directions), checked, outcome)


def measured_certificate(goal: Goal, now: Refined, **level: Any) -> Certificate:
    """Return the certificate of the players, from products in the precision of the updates."""
    players, images = now.players
    sums, scores = goal.rounding.parts(_values(players, images))
    return certificate(
        players,
        images,
        goal.k,
        floor=sums,
        scores=scores,
        scale=goal.scale,
        tol=goal.tol,
        **level,
    )


def search(goal: Goal, now: Refined, used: int, look: int = 1) -> tuple[Certificate, int]:
    """Certify players after a search for missed directions, and return the passes used as well.

    Parameters
    ----------
    goal : Goal
    now : Refined
    used : int
        Passes used so far.
    look : int
        Number of this search. Each has its own probes and a share of the risk, and all shares add up to the risk.
    """
    players, risk = now.players.directions, share_of_risk(look)
    if players.shape[0] == players.shape[1]:
        # Nothing lies outside, but the bound on rounding is not certain.
        return measured_certificate(goal, now, level=-math.inf, confidence=1 - RISK), used
    error = float(goal.rounding.of_products(_values(*now.players)).max())
    probes, found = draw_probes(goal.seed + look, PROBES, players), measured_certificate(goal, now)
    while used < goal.max_passes and not goal.passes.stopped:
        before = probes.level
        images = image(goal.passes, probes.directions, goal.mean, "probes")
        probes, used = powered(probes, images, players, risk=risk, error=error), used + 1
        found = measured_certificate(
            goal,
            now,
            level=probes.level,
            confidence=1 - RISK,
            probes=PROBES,
            powers=probes.powers,
        )
        if goal.met(found) or probes.level > 0.98 * before:
            break
    return found, used


def _status(goal: Goal, found: Certificate, spent: Status | None, floor: bool) -> Status | None:
    """Return the status after a check, or None if further passes can help.

    `spent` is the status if no passes are left; `floor` is whether players cannot be improved.
    """
    if (converged := converged_status(found, goal.tol, goal.determined)) is not None:
        return converged
    if floor:
        return Status.FLOOR_REACHED
    if spent is not None:
        return spent
    hopeless = (
        found.kind != "certified"
        or float(np.max(found.group_angle[: goal.determined], initial=0)) >= math.pi / 2
    )
    return Status.UNPROVEN if hopeless else None


def _improved(
    goal: Goal, best: Refined, found: Certificate, used: int
) -> tuple[Refined, Certificate, int, bool]:
    """Make passes until the certificate meets the goal, passes run out, or rounding prevents progress.

    Returns the best players, their certificate, the passes used, and whether rounding ended it.
    """
    now, stalled, dtype = best, 0, best.players.directions.dtype
    while used < goal.max_passes and not goal.met(found) and not goal.passes.stopped:
        now, used = improve(goal.passes, now, goal.mean), used + 1
        after = measured_certificate(goal, now)
        stalled = 0 if _improved_enough(found, after) else stalled + 1
        if _merit(after) < _merit(found):
            best, found = now, after
        if stalled >= 2 and _at_floor(found, dtype):
            return best, found, used, True
    return best, found, used, False


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


def _values(players: jax.Array, images: jax.Array) -> np.ndarray:
    """Return the Rayleigh quotient of each player, shape (K,)."""
    return gather(_quotients(players, images)).astype(np.float64)


@jax.jit
def _quotients(players: jax.Array, images: jax.Array) -> jax.Array:
    return jnp.sum(players * images, axis=1)
