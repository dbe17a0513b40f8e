"""Refinement: further passes over the data, until the certificate meets the tolerance.

Passes that improve the players run in the precision of the updates, and their bounds include its rounding. When the
bounds meet the tolerance, random probes search for missed directions. If only rounding prevents this, because
components are close or the tolerance is small, the players are first measured and rotated once more in float64
(`float64_products`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sharding.gather import gather
from eigengame.solver.certificate import Certificate
from eigengame.solver.check import Checked, Goal, check, converged_status
from eigengame.solver.moments import Moments
from eigengame.solver.outcome import Outcome, Status
from eigengame.solver.passes import Passes
from eigengame.solver.products import Refined, improve, measure
from eigengame.solver.rounding import Rounding

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
        worst = float(np.max(checked.certificate.group_angle[: goal.determined], initial=0))
        if status is not None or goal.passes.stopped:
            break
        # The probes allow larger missed directions than assumed: smaller residuals compensate.
        assert goal.tol is not None
        assert aim.tol is not None
        status, aim = spent, replace(goal, tol=aim.tol * 0.5 * goal.tol / worst)
    if goal.passes.stopped:
        status = Status.STOPPED
    if checked is None:
        checked = Checked(goal.certify(best), gather(best.players.directions), used)
    outcome = Outcome(status or spent, route, used)
    return Refinement(checked.players, checked.certificate, outcome)


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
    mean, scatter = (gather(one).astype(np.float64) for one in (moments.mean, moments.scatter))
    squares = float(scatter.sum() + float(moments.weight) * np.sum(mean**2))
    d, size = passes.source.shape[1], passes.size
    return Rounding.probable(dtype, d, size, rows / size, squares)


def measures_in_float64(passes: Passes, players: int) -> bool:
    """Return whether rows can be read in float64: rows on a device must leave memory for wider ones."""
    source, d = passes.source, passes.source.shape[1]
    return not source.on_device or 8 * d * (passes.size + 4 * players) <= DEVICE_BYTES
