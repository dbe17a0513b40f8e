"""Certificates of a fitted model on given data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.certificates.rounding import Rounding
from eigengame.solver.fit import Executor, LocalExecutor
from eigengame.solver.passes.events import Watcher
from eigengame.solver.planning.problem import Problem
from eigengame.solver.refinement.certify_players import certify
from eigengame.solver.refinement.goal import Goal
from eigengame.solver.results.result import Result, divisor
from eigengame.solver.rows.frame import first_mean

PASSES = 5
"""Largest number of passes for a certificate."""

NOT_FINITE = "infs or NaNs"
"""Text of SciPy's error for an array that is not finite."""


def certify_model(
    problem: Problem, model: Result, executor: Executor, watchers: Sequence[Watcher] = ()
) -> Certificate:
    """Certify the components of a model on the data of a problem, about the mean of that data.

    Parameters
    ----------
    problem : Problem
        Its weights are those of the certificate, with forgetting applied.
    model : Result
    executor : Executor
    watchers : sequence of Watcher
    """
    source, options, weights = problem.source, problem.options, problem.weights
    k, d = model.components.shape
    problem = replace(problem, options=replace(options, extra=len(model.players) - k))
    # The frame of the fit may not suit other data; that data is looked at if it can be read here, and again.
    fresh = isinstance(executor, LocalExecutor) and source.again and not source.on_device
    plan = executor.plan(problem, k, None if fresh else model.frame)
    frame = model.frame if plan.frame is None else plan.frame
    mean = first_mean(source, frame, weights) if fresh else frame.inner(model.mean)
    rows = source.shape[0] or model.rows
    total = float(rows)
    if weights is not None:
        rows, total = int(np.count_nonzero(weights)), float(weights.sum())
    squares = (float(model.var.sum()) + float(np.sum(model.mean**2))) * rows
    goal = Goal(
        passes=executor.passes(problem, plan, watchers),
        mean=jnp.asarray(mean, options.dtype) if options.center else None,
        k=k,
        determined=k,
        scale=divisor(total, rows, fading=options.forget < 1) / frame.unit**2,
        max_passes=PASSES,
        tol=None,
        seed=options.seed + 3,
        rounding=Rounding.probable(
            options.dtype, d, plan.batch, rows / plan.batch, squares / frame.unit**2
        ),
        dtype=options.dtype,
        in_float64=not source.on_device,
    )
    try:
        return certify(goal, model.players)
    except ValueError as error:
        if NOT_FINITE in str(error):
            goal.passes.refuse_unless_finite(
                np.full(d, np.nan)
            )  # raises with the place in the data
        raise
