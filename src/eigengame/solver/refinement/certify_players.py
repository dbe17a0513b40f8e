"""Certificates of given players on data, by as few passes as possible."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from eigengame.linalg.orthonormal import orthonormalise
from eigengame.sharding.gather import gather
from eigengame.solver.certificates.certificate import Certificate, certificate, stored
from eigengame.solver.passes import float64_products as float64
from eigengame.solver.refinement.block_products import multiply
from eigengame.solver.refinement.goal import Goal
from eigengame.solver.refinement.products import Imaged, Refined, image, measure
from eigengame.solver.refinement.refine import measured_players
from eigengame.solver.refinement.refine_on_device import measured_certificate, search


def certify(goal: Goal, players: np.ndarray) -> Certificate:
    """Certify given players on the data by at most `goal.max_passes` passes.

    Measuring rotates the players on this data. The bound is that of the players as given: the bound of the rotated
    ones plus the angle between the two.
    """
    aim = replace(goal, tol=None)
    if goal.on_host(players):
        return measured_players(aim, players)
    now = measure(goal.passes, jnp.asarray(players), goal.mean)
    found, _ = search(aim, now, 1)
    return stored(found, gather(now.players.directions).astype(np.float64), players)


def certify_by_one_pass(goal: Goal, players: np.ndarray) -> Certificate:
    """Return the conditional certificate of players by one pass, without rotating them.

    They need not be orthonormal: orthonormal players of the same span are measured.
    """
    if goal.on_host(players):
        start = float64.orthonormal(players)
        found = multiply(goal, start, "float64", "measuring")
        bounds = certificate(
            start, found.images, goal.k, floor=found.sums, scores=found.scores, scale=goal.scale
        )
        return stored(bounds, start, players)
    there = orthonormalise(jnp.asarray(players))
    now = Refined(Imaged(there, image(goal.passes, there, goal.mean, "measuring")))
    return stored(measured_certificate(goal, now), gather(there).astype(np.float64), players)
