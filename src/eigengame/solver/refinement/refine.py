"""Refinement: further passes over the data, until the certificate meets the tolerance.

Each pass multiplies two blocks by M. The residual directions of the players extend a Krylov space, in which the
players are the eigenvectors (`krylov_space`). The random probes are multiplied once more, and bound what lies
outside the players (`probes`). So every pass ends with a certificate. Passes are in the precision of the updates if
bounds on its rounding leave room for the tolerance. Otherwise the rounding is measured where that is possible, and
if it leaves no room either, passes are in float64.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from eigengame._system.blas_threads import all_blas_threads
from eigengame.sharding.gather import gather
from eigengame.solver.certificates.certificate import Certificate, stored
from eigengame.solver.certificates.image_errors import rounding_angles
from eigengame.solver.certificates.krylov_space import (
    KrylovSpace,
    extended,
    fresh_directions,
    krylov_space,
    most_directions,
    truncated,
)
from eigengame.solver.certificates.probes import ProbeImages, Probes, draw_probes
from eigengame.solver.certificates.small_products import SmallProducts, small_products
from eigengame.solver.passes import float64_products as float64
from eigengame.solver.planning.options import REFINED_PROBES
from eigengame.solver.refinement.block_products import (
    BlockProducts,
    Precision,
    multiply,
    rounded_to,
)
from eigengame.solver.refinement.goal import Goal
from eigengame.solver.refinement.precision import (
    ROOM,
    first_precision,
    next_precision,
    rounding_is_too_large,
)
from eigengame.solver.refinement.refine_on_device import Refinement, refine_on_device
from eigengame.solver.refinement.space_certificate import space_certificate
from eigengame.solver.results.outcome import Outcome, Status, converged_status

WIDE = 2**20
"""Size of players from which products on the host use all threads."""

LOW = 0.75
"""Level, as a share of the variance of the last component, below which given components need no further passes."""

STALLED = 3
"""Passes without progress after which a refinement ends."""

POWERS = 3
"""Products of the probes after which the level outside their players hardly falls any more."""

STUCK = 0.95
"""Share of a level, and of the sum of the bounds, below which a pass has improved it."""

FAR = 1.15
"""Ratio of the level to the first variance beyond the players from which better players have a lower one."""

HIGH = 0.9
"""Level, as a share of the variance of the last component, above which a new precision comes with new probes."""

PATIENCE = 2
"""Passes in a row without an improvement after which probes are drawn anew."""

MOST_LOOKS = 3
"""Largest number of times that probes are drawn, except for players that have missed a direction."""


class _Step(NamedTuple):
    """A refinement after a pass.

    Attributes
    ----------
    space : KrylovSpace
    probes : Probes or None
        None if nothing lies outside the players.
    certificate : Certificate
    precision : Precision
        Of the passes.
    look : int
        Number of times that probes were drawn. Each has a share of the risk, and all shares add up to the risk.
    measured : SmallProducts, optional
        Of the directions of the space, from the certificate.
    settled : bool
        Whether the residuals of the players are rounding, so that passes multiply the probes only.
    stuck : int
        Passes in a row that have improved neither the level nor the bounds, since the probes were drawn.
    """

    space: KrylovSpace
    probes: Probes | None
    certificate: Certificate
    precision: Precision
    look: int = 1
    measured: SmallProducts | None = None
    settled: bool = False
    stuck: int = 0


def refine(
    goal: Goal,
    players: jax.Array,
    *,
    route: str,
    used: int,
    values: np.ndarray | None = None,
    first: ProbeImages | None = None,
) -> Refinement:
    """Refine the players by further passes, after `used` passes already made.

    Parameters
    ----------
    goal : Goal
    players : array of shape (K, d)
    route : str
        Route of the outcome.
    used : int
    values : array of shape (K,), optional
        Estimates of the eigenvalues, from which the precision of the first pass is chosen.
    first : ProbeImages, optional
        Of the passes already made.
    """
    if not goal.on_host(players):
        return refine_on_device(goal, players, route=route, used=used)
    with all_blas_threads() if players.size > WIDE else nullcontext():
        return _refine_on_host(goal, players, route, used, values, first)


def _refine_on_host(
    goal: Goal,
    players: jax.Array,
    route: str,
    used: int,
    values: np.ndarray | None,
    first: ProbeImages | None,
) -> Refinement:
    """Version of `refine` for players that are small enough for the host; parameters are the same."""
    count = len(players)
    now, used = _begin(goal, gather(players), values, first), used + 1
    best, stalled, level = _players_of(now, count), 0, now.certificate.level
    while True:
        status = _status(goal, now, used, stalled)
        if status is not None:
            break
        after = _next(goal, now, count)
        used += 1
        drawn, lower = after.look != now.look, after.certificate.level < 0.95 * level
        stalled = 0 if drawn or lower or _progress(best, after, goal.k) else stalled + 1
        level = min(level, after.certificate.level)
        if _merit(after.certificate) <= _merit(best.certificate):
            best = _players_of(after, count)
        now = after
    if goal.passes.stopped:
        status = Status.STOPPED
    kept = best.space.directions.astype(goal.dtype)
    return Refinement(kept, best.certificate, Outcome(status, route, used))


def _players_of(now: _Step, count: int) -> _Step:
    """Return a step with a copy of its players only: it may outlive the space, which takes much memory."""
    players = KrylovSpace(*(part[:count].copy() for part in now.space))
    return now._replace(space=players, probes=None, measured=None)


def _begin(
    goal: Goal, players: np.ndarray, values: np.ndarray | None, first: ProbeImages | None
) -> _Step:
    """Measure the players, and the probes with them, by one pass."""
    start = float64.orthonormal(players)
    count, d = start.shape
    precision = first_precision(goal, values)
    if precision != "float64":
        start = rounded_to(start, goal.dtype)
    fixed = start if precision == "float64" else float64.orthonormal(start)
    probes = None
    if count < d:
        unit = _unit(goal, d)
        probes = (
            Probes.outside(fixed, draw_probes(goal.seed, REFINED_PROBES, d), unit)
            if first is None
            else Probes.after_first_pass(fixed, *first, unit)
        )
    block = start if probes is None else np.concatenate([start, probes.block()])
    found, others = multiply(goal, block, precision).split(count)
    space = krylov_space(*found)
    if probes is not None:
        probes = _multiplied(probes, others, space).with_space(space)
    measured = small_products(*space[:2])
    certified = space_certificate(goal, space, probes, count, 1, measured, precision)
    return _Step(space, probes, certified, precision, measured=measured)


def _next(goal: Goal, now: _Step, count: int) -> _Step:
    """Make one more pass: over residual directions, or over all players if float64 is needed from here on."""
    space, precision = now.space, now.precision
    level = now.certificate.level * goal.scale
    again = precision != "float64" and rounding_is_too_large(goal, space, level)
    probes, look = _probes_of_next(goal, now, count, again=again)
    if again:
        assert probes is not None
        directions = _together(space.directions[:count], probes.players)
        precision = next_precision(goal, precision)
    elif now.settled:
        directions = space.directions[:0]
    else:
        directions = fresh_directions(space, count)
    if precision != "float64":
        directions = rounded_to(directions, goal.dtype)
    # A few powers are enough: afterwards only the players are multiplied.
    powered = None if probes is None or probes.complete else probes
    block = directions if powered is None else np.concatenate([directions, powered.block()])
    found, others = multiply(goal, block, precision).split(len(directions))
    measured, settled = now.measured, not len(directions)
    if not settled:
        space, measured = krylov_space(*found) if again else extended(space, *found), None
    if probes is not None:
        probes = (probes if powered is None else _multiplied(powered, others, space)).with_space(
            space
        )
        if len(space.directions) > most_directions(count, directions.shape[1]):
            space, measured = truncated(space, probes.players, 2 * count), None
    measured = small_products(*space[:2]) if measured is None else measured
    certified = space_certificate(goal, space, probes, count, look, measured, precision)
    improved = look != now.look or _improved(now.certificate, certified)
    stuck = 0 if improved else now.stuck + 1
    return _Step(space, probes, certified, precision, look, measured, settled, stuck)


def _probes_of_next(
    goal: Goal, now: _Step, count: int, *, again: bool
) -> tuple[Probes | None, int]:
    """Return the probes of the next pass, and the number of times that probes were drawn.

    They are drawn anew for players of the space if those of the first pass leave out too much. With `again`, the
    precision changes, and the errors of earlier products would stay.
    """
    space, probes = now.space, now.probes
    if probes is None:
        return None, now.look
    level = now.certificate.level * goal.scale
    high = again and level > HIGH * float(space.values[goal.k - 1])
    if not (high or _players_are_poor(goal, now, probes, count)):
        return probes, now.look
    draws = draw_probes(goal.seed + now.look + 1, REFINED_PROBES, space.directions.shape[1])
    better = space.directions[: count if again else 2 * count]
    return Probes.outside(better, draws, probes.unit), now.look + 1


def _improved(before: Certificate, after: Certificate) -> bool:
    """Return whether a pass has lowered the level or the bounds by a noticeable part."""
    return after.level < STUCK * before.level or _merit(after) < STUCK * _merit(before)


def _players_are_poor(goal: Goal, now: _Step, probes: Probes, count: int) -> bool:
    """Return whether the players of the probes leave out much more variance than the first ones of the space.

    The level cannot be below it. Either directions of the space show that, or a level that has stopped to fall
    although the players of the space leave out less.
    """
    space = now.space
    if len(space.directions) <= count:
        return False
    largest, following = float(space.values[goal.k - 1]), float(space.values[count])
    found = _left_out(space, probes)
    if found > 1.25 * following and found > 0.5 * largest:
        return True
    level = now.certificate.level * goal.scale
    stuck = now.stuck >= PATIENCE and probes.powers >= POWERS and now.look < MOST_LOOKS
    return stuck and level > FAR * following and level > 0.5 * largest


def _left_out(space: KrylovSpace, probes: Probes) -> float:
    """Return the largest variance of a direction of a space outside the players of the probes."""
    inside = probes.players @ space.directions.T
    outside = np.linalg.svd(inside)[2][len(probes.players) :]
    if not len(outside):
        return 0.0
    return float(np.linalg.eigvalsh((outside * space.values) @ outside.T)[-1])


def measured_players(goal: Goal, players: np.ndarray) -> Certificate:
    """Certify given players (K, d) in float64, by one pass and further ones of the probes while these help.

    The players are rotated to the eigenvectors within their span; the angle of this rotation is added.
    """
    goal = replace(goal, dtype=np.float64)
    now, used, count = _begin(goal, players, None, None), 1, len(players)
    while used < goal.max_passes and now.probes is not None and not goal.passes.stopped:
        probes = now.probes
        # A level well below the last component does not limit its bound.
        if probes.complete or now.certificate.level <= LOW * now.certificate.rayleigh[-1]:
            break
        found = multiply(goal, probes.block(), "float64", "probes")
        probes, used = _multiplied(probes, found, now.space), used + 1
        after = space_certificate(goal, now.space, probes, count, 1, now.measured, now.precision)
        done = after.level > 0.98 * now.certificate.level
        now = now._replace(probes=probes, certificate=after)
        if done:
            break
    return stored(now.certificate, now.space.directions, players)


def _multiplied(probes: Probes, found: BlockProducts, space: KrylovSpace) -> Probes:
    """Return the probes after one more product."""
    floor = found.floor(float(space.values[0]))
    return probes.multiplied(found.directions, found.images, floor)


def _unit(goal: Goal, d: int) -> float:
    """Return a size of eigenvalues outside the players: the mean of all, which the trace bounds."""
    return max(goal.rounding.trace / d, np.finfo(float).tiny)


def _together(players: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return orthonormal directions of the span of both blocks, the players first."""
    rest = others
    for _ in range(2):
        rest = rest - (rest @ players.T) @ players
    _, sizes, rows = np.linalg.svd(rest, full_matrices=False)
    return float64.orthonormal(np.concatenate([players, rows[sizes > 1e-12]]))


def _status(goal: Goal, now: _Step, used: int, stalled: int) -> Status | None:
    """Return the status after a pass, or None if further passes can help."""
    found = now.certificate
    if (converged := converged_status(found, goal.tol, goal.determined)) is not None:
        return converged
    if goal.passes.stopped:
        return Status.STOPPED
    if used >= goal.max_passes:
        return Status.PASSES_MADE if goal.tol is None else Status.PASSES_SPENT
    complete = now.space.directions.shape[0] == now.space.directions.shape[1]
    if stalled < STALLED and not complete:
        return None
    if goal.tol is None:
        return Status.FLOOR_REACHED
    space = now.space
    least = rounding_angles(space.values, space.sums, space.scores, goal.k, -math.inf)
    limited = (least[: goal.determined] > ROOM * goal.tol).any()
    return Status.FLOOR_REACHED if complete or limited else Status.UNPROVEN


def _merit(found: Certificate) -> float:
    """Return the sum of the bounds: smaller is better."""
    return float(np.sum(found.group_angle))


def _progress(before: _Step, after: _Step, k: int) -> bool:
    """Return whether a pass improved a bound or a residual by a noticeable part."""
    one, other = before.certificate, after.certificate
    bounds = (other.group_angle < 0.8 * one.group_angle).any()
    # A residual below the rounding of its image does not get smaller by further passes.
    active = other.residual * 2 * after.space.values[0] > after.space.floor[:k] * other.rayleigh[0]
    settled = active.any() and np.max(other.residual[active]) < 0.8 * np.max(one.residual[active])
    return bool(bounds or settled)
