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

SHARE = 0.01
"""Share by which squares of residuals are enlarged for their errors."""

HALVINGS = 12
"""Number of times that the interval of a level is halved."""


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
    # Directions that are far from converged are better left to the level.
    for kept in {count, goal.k} if math.isfinite(level) else ():
        if kept < len(space.directions):
            part = space.first(kept)
            higher = _level_with(space, kept, level)
            few = certificate(
                *part[:2], goal.k, floor=part.sums, scores=part.scores, level=higher, **options
            )
            found = tighter(found, few)
    players = space.directions[:count]
    return stored(found, players, players.astype(goal.dtype))


def _level_with(space: KrylovSpace, count: int, level: float) -> float:
    r"""Return a bound on the largest eigenvalue outside the first players, from that outside the space.

    The other directions of the space have values $\theta_j$, and are coupled to the outside by their residuals
    $R$. An eigenvalue $h$ above all $\theta_j$ and above the level $\mu$ has
    $h \le \mu + \|(h - \Theta)^{-1/2}R\|^2$, which bounds it: large residuals of directions with small values
    matter little.
    """
    # Values and residuals are off by the errors of the images.
    error = float(np.linalg.norm(space.floor[count:]))
    values = space.values[count:] + error
    rest = residuals(space, len(space.directions))[count:]
    couplings = rest @ rest.T
    coupling = math.sqrt(max(float(np.linalg.eigvalsh(couplings)[-1]), 0.0)) + error
    largest = float(values[0])
    half = (largest - level) / 2
    above = (largest + level) / 2 + math.hypot(half, coupling)
    couplings = (1 + SHARE) * couplings + (1 + 1 / SHARE) * error**2 * np.eye(len(values))
    below = max(largest, level)
    for _ in range(HALVINGS):
        middle = (above + below) / 2
        if _exceeds((middle - level) * np.diag(middle - values), couplings):
            above = middle
        else:
            below = middle
    return above


def _exceeds(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the difference of two symmetric matrices is positive definite."""
    try:
        np.linalg.cholesky(one - other)
    except np.linalg.LinAlgError:
        return False
    return True
