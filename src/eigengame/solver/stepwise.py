"""The route of step algorithms such as Oja's: a pass for the mean, passes of the algorithm, one to measure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import REGISTRY, Algorithm, Remembered, make
from eigengame.game.rayleigh_ritz import settle
from eigengame.game.rows import DenseRows, play_dtype
from eigengame.game.sphere import random_players
from eigengame.linalg.orthonormal import orthonormalise
from eigengame.sharding.gather import gather
from eigengame.sharding.placement import Placement
from eigengame.solver.passes.passes import Passes
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.plan import Plan
from eigengame.solver.refinement.certify_players import certify_by_one_pass
from eigengame.solver.refinement.goal import Goal, measures_in_float64, play_rounding
from eigengame.solver.results.outcome import Outcome, Status
from eigengame.solver.results.result import Found, scale_of
from eigengame.solver.rows.moments import add_moments, gathered_moments, no_moments
from eigengame.solver.rows.row_counts import refuse_unless_counted

STEP_SIZE = 0.25
"""Default step size, for batches whose largest eigenvalue is near 1."""


def solve_stepwise(plan: Plan, passes: Passes) -> Found:
    """Run an algorithm of the registry."""
    options, k, d = plan.options, plan.components, passes.source.shape[1]
    place = passes.placement
    start = (no_moments(d, options.dtype, place), 0)
    moments, rows = passes.fold(_add_moments, start, task="moments")
    passes.refuse_unless_finite(moments.scatter)
    refuse_unless_counted(passes.source.name, rows, moments.weight, 2)
    mean = moments.mean if options.center else None
    first = passes.first()
    unit = _unit(first, mean, d, place)
    begun = random_players(options.seed, k, d, options.dtype)
    algorithm = _algorithm(plan.route, first, begun, options, mean, unit, place)
    state = place.state(algorithm.init(begun))
    for _ in range(options.passes):
        state = passes.fold(
            lambda state, batch, _: _step(algorithm, place, batch, state, mean, unit),
            state,
            task=plan.route,
        )
    players = algorithm.components(state)
    finite = bool(jnp.isfinite(players).all())
    components = gather(players if finite else place.players(begun))
    scale = scale_of(moments, rows, options)
    goal = Goal(
        passes=passes,
        mean=mean,
        k=k,
        determined=k,
        scale=scale,
        max_passes=1,
        tol=None,
        seed=options.seed + 2,
        rounding=play_rounding(passes, moments, rows, options.dtype),
        dtype=options.dtype,
        in_float64=measures_in_float64(passes, k),
    )
    measured = certify_by_one_pass(goal, components)
    status = Status.STREAM_ENDED if finite else Status.DIVERGED
    return Found(
        players=components[:, :d],
        values=measured.rayleigh * scale,
        certificate=measured,
        outcome=Outcome(status, plan.route, options.passes + 2),
        moments=gathered_moments(moments, d, place),
        rows=rows,
    )


def _add_moments(carry: Any, rows: Any, count: int) -> Any:
    """Add one batch to the moments and the number of rows."""
    moments, seen = carry
    return add_moments(moments, rows), seen + count


def _algorithm(
    name: str,
    first: Any,
    players: jax.Array,
    options: Options,
    mean: jax.Array | None,
    unit: float,
    place: Placement,
) -> Algorithm:
    """Return the algorithm with its step size, and with the eigenvalues of the first batch if it needs them."""
    settings: dict[str, Any] = {}
    fields = getattr(REGISTRY[name], "__dataclass_fields__", {})
    if "step_size" in fields:
        settings["step_size"] = STEP_SIZE if options.step_size is None else options.step_size
    if "eigenvalues" in fields:
        game, k = Remembered(), len(players)
        state = place.state(game.init(players))
        state = _step(game, place, first, state, mean, unit)
        strengths = gather(state.memory.strengths).astype(np.float64)
        # Strictly decreasing, as the theorem requires, even if the batch has repeated values.
        falling = strengths[: k + 1] * (1 - 1e-6 * np.arange(min(k + 1, strengths.size)))
        settings["eigenvalues"] = tuple(np.append(falling, 0.0)[: k + 1])
    return make(name, **settings)


@partial(jax.jit, static_argnums=(0, 1))
def _step(
    algorithm: Algorithm,
    place: Placement,
    rows: DenseRows,
    state: Any,
    mean: jax.Array | None,
    unit: float,
) -> Any:
    """Return the state after one batch of centred rows in the given unit."""
    scaled = (rows.centred(mean).values / unit).astype(play_dtype(rows))
    state, _ = algorithm.update(replace(rows, values=scaled, mean=None), state)
    return place.constrain_state(state)


def _unit(rows: DenseRows, mean: jax.Array | None, d: int, place: Placement) -> float:
    """Return the square root of the largest eigenvalue of a batch: the unit of rows, so that steps have no unit."""
    centred = rows.centred(mean)
    players = place.players(random_players(0, min(4, d), d, play_dtype(rows)))
    for _ in range(10):
        players = centred.directions(centred.scores(orthonormalise(players)))
    top = float(settle(centred, orthonormalise(players))[0][0])
    return float(np.sqrt(top)) if top > 0 else 1.0
