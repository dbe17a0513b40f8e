"""Certificates of players by passes over the data: measurement, and a search for missed directions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.orthonormal import orthonormalise
from eigengame.sharding.gather import gather
from eigengame.solver import float64_products as float64
from eigengame.solver.certificate import Certificate, certificate, stored
from eigengame.solver.outcome import Status
from eigengame.solver.passes import Passes
from eigengame.solver.probes import draw_probes, powered
from eigengame.solver.products import Imaged, Refined, image, measure
from eigengame.solver.rounding import Rounding

PROBES = 16
"""Number of random directions that search for missed ones."""


RISK = 1e-3
"""Probability that they miss one."""


MOST_PRECISE = 2**27
"""Largest size of players that are measured in float64 on the host: 1 GiB."""


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
    determined : int
        Number of components that the number of rows can determine; the others do not count for `tol`.
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
    determined: int
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
        return self.tol is not None and found.within(self.tol, self.determined)


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
        found, used = _search_on_device(goal, now, used, look)
        return Checked(found, gather(players), used)
    start = float64.orthonormal(gather(players))
    found, settled, used = _search_in_float64(goal, start, used, look, dtype)
    return Checked(found, settled.astype(dtype), used)


def share_of_risk(look: int) -> float:
    """Return the risk of a search: 1/2, 1/6, 1/12, ... of the risk, which add up to it."""
    return RISK / (look * (look + 1))


def _search_in_float64(
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
    mean = None if goal.mean is None else gather(goal.mean).astype(np.float64)
    probes = None if everything else draw_probes(goal.seed + look, PROBES, players)
    block = players if probes is None else np.concatenate([players, probes.directions])
    measured = float64.products(goal.passes, block, mean)
    own = float64.Products(
        players, measured.images[:count], measured.floor[:count], measured.rounding
    )
    settled, used = float64.rotated(own), used + 1
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
        again = float64.products(goal.passes, probes.directions, mean, "probes")
        images, error, used = again.images, max(error, float(again.floor.max())), used + 1


def _search_on_device(goal: Goal, now: Refined, used: int, look: int) -> tuple[Certificate, int]:
    """On-device version of `_search_in_float64`, in the precision of the updates."""
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
        start = float64.orthonormal(players)
        return _search_in_float64(aim, start, 0, 1, players.dtype, kept=players)[0]
    now = measure(goal.passes, jnp.asarray(players), goal.mean)
    found, _ = _search_on_device(aim, now, 1, 1)
    return stored(found, gather(now.players.directions).astype(np.float64), players)


def certify_by_one_pass(goal: Goal, players: np.ndarray) -> Certificate:
    """Return the conditional certificate of players by one pass, without rotating them.

    They need not be orthonormal: orthonormal players of the same span are measured.
    """
    if goal.in_float64 and players.size <= MOST_PRECISE:
        start = float64.orthonormal(players)
        mean = None if goal.mean is None else gather(goal.mean).astype(np.float64)
        measured = float64.products(goal.passes, start, mean)
        found = certificate(start, measured.images, goal.k, floor=measured.floor, scale=goal.scale)
        return stored(found, start, players)
    there = orthonormalise(jnp.asarray(players))
    found = goal.certify(Refined(Imaged(there, image(goal.passes, there, goal.mean, "measuring"))))
    return stored(found, gather(there).astype(np.float64), players)


def converged_status(
    found: Certificate, tol: float | None, determined: int | None = None
) -> Status | None:
    """Return the status of a certificate that meets the tolerance, by components or by clusters; else None."""
    if found.kind != "certified" or tol is None or not found.within(tol, determined):
        return None
    return (
        Status.CONVERGED
        if (found.angle[:determined] <= tol).all()
        else Status.CONVERGED_IN_CLUSTERS
    )


def _values(players: Any, images: Any) -> np.ndarray:
    """Return the Rayleigh quotient of each player, shape (K,)."""
    if isinstance(players, np.ndarray):
        return np.sum(players * images, axis=1)
    return gather(_quotients(players, images)).astype(np.float64)


@jax.jit
def _quotients(players: jax.Array, images: jax.Array) -> jax.Array:
    return jnp.sum(players * images, axis=1)
