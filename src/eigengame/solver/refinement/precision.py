"""Precision of the passes of a refinement: that of the updates, float32 with measured errors, or float64."""

from __future__ import annotations

import numpy as np

from eigengame.solver.certificates.image_errors import rounding_angles
from eigengame.solver.certificates.krylov_space import KrylovSpace
from eigengame.solver.refinement.block_products import Precision
from eigengame.solver.refinement.float32_products import measurable
from eigengame.solver.refinement.goal import Goal

ROOM = 0.5
"""Share of the tolerance that rounding may take in passes in the precision of the updates."""

FLAT = 0.55
"""Variance of the last player, as a share of that of the last component, above which bounds on the rounding of the
updates become several times larger on the way to a certificate. It is then measured from the beginning."""


def first_precision(goal: Goal, values: np.ndarray | None) -> Precision:
    """Return the precision of the first pass, from estimates of the eigenvalues (K,) if there are any."""
    if np.dtype(goal.dtype) == np.float64 or goal.passes.sparse_on_host:
        return "float64"
    if values is None or goal.tol is None:
        return "update"
    least = rounding_angles(values, *goal.rounding.parts(values), goal.k, float(values[-1]))
    flat = measurable(goal) and values[-1] > FLAT * values[goal.k - 1]
    if not flat and (least[: goal.determined] <= ROOM * goal.tol).all():
        return "update"
    return next_precision(goal, "update")


def next_precision(goal: Goal, precision: Precision) -> Precision:
    """Return the precision of passes if the rounding of this one is too large."""
    return "measured" if precision == "update" and measurable(goal) else "float64"


def rounding_is_too_large(goal: Goal, space: KrylovSpace, level: float) -> bool:
    """Return whether the rounding of the images alone keeps a component above the tolerance.

    `level` is that of the certificate, in the units of $M$.
    """
    if goal.tol is None:
        return False
    least = rounding_angles(
        space.values, space.sums, space.scores, goal.k, min(level, float(space.values[-1]))
    )
    return bool((least[: goal.determined] > goal.tol).any())
