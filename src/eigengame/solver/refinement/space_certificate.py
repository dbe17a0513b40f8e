"""The certificate of players in a Krylov space, with probes that bound what lies outside it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eigengame.solver.certificates.certificate import Certificate, certificate, stored, tighter
from eigengame.solver.certificates.krylov_space import KrylovSpace, residuals
from eigengame.solver.certificates.probes import Probes
from eigengame.solver.certificates.risk import RISK, share_of_risk
from eigengame.solver.certificates.small_products import SmallProducts
from eigengame.solver.refinement.block_products import Precision
from eigengame.solver.refinement.goal import Goal


def space_certificate(
    goal: Goal,
    space: KrylovSpace,
    probes: Probes | None,
    count: int,
    look: int,
    measured: SmallProducts | None,
    precision: Precision,
) -> Certificate:
    """Return the certificate of the components as they are stored.

    Products in float64 have a worst-case bound on their errors. In float32 it holds with high probability only.
    """
    level = (
        -math.inf
        if probes is None or len(space.directions) == space.directions.shape[1]
        else probes.level(share_of_risk(look))
    )
    options: dict[str, Any] = {
        "scale": goal.scale,
        "confidence": 1.0 if probes is None and precision == "float64" else 1 - RISK,
        "probes": 0 if probes is None else probes.count,
        "powers": 0 if probes is None else probes.powers,
        "tol": goal.tol,
    }
    found = certificate(
        *space[:2],
        goal.k,
        floor=space.sums,
        scores=space.scores,
        level=level,
        measured=measured,
        **options,
    )
    if count < len(space.directions) and math.isfinite(level):
        part = space.first(count)
        higher = _level_with(space, count, level)
        few = certificate(
            *part[:2], goal.k, floor=part.sums, scores=part.scores, level=higher, **options
        )
        found = tighter(found, few)
    players = space.directions[:count]
    return stored(found, players, players.astype(goal.dtype))


def _level_with(space: KrylovSpace, count: int, level: float) -> float:
    """Return a bound on the largest eigenvalue outside the first players, from that outside the space.

    The other directions of the space have values up to that of the next one, and are coupled to the outside by
    their residuals.
    """
    # Values and residuals are off by the errors of the images.
    error = float(np.linalg.norm(space.floor[count:]))
    value = float(space.values[count]) + error
    rest = residuals(space, len(space.directions))[count:]
    coupling = math.sqrt(float(np.linalg.eigvalsh(rest @ rest.T)[-1])) + error
    half = (value - level) / 2
    return (value + level) / 2 + math.hypot(half, coupling)
