"""Reduced communication: delayed or lost broadcasts, and a separate batch for each player.

Eight players compute the first components of the exponential spectrum, on M itself for delays and losses, and on
batches for separate data. The cost is the number of iterations until all are within pi/8, the saving the number
of broadcasts until then.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.game import SymmetricRows
from reproduction.base import Results, Run
from reproduction.curves import mean_curve
from reproduction.experiments.decentralised_figure import draw_broadcasts
from reproduction.experiments.decentralised_text import (
    average,
    broadcasts,
    claims,
    reading,
    summary,
)
from reproduction.experiments.decentralised_trials import D, K, family
from reproduction.protocol import Protocol
from reproduction.trials import orders, play_trials, starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "Delayed or lost broadcasts, and separate batches"
PAPER = "Sec. Method (A decentralized algorithm), Sec. Conclusion (Scale)"

STEP = 1e-4
"""Step size on batches."""
NAMES = {
    "shared": "one batch for all players",
    "own": "a batch for each player",
    "all": "all those batches for all",
}

PROTOCOL = Protocol(
    # `updates` on M, and `stream` on batches of `batch` out of n rows.
    full={
        "steps": (1e-3, 1e-4, 1e-5),
        "lags": (1, 2, 4, 8, 16, 32, 64),
        "dropouts": (0.0, 0.1, 0.25, 0.5, 0.75, 0.9),
        "updates": 8000,
        "trials": 10,
        "n": 20_480,
        "batch": 128,
        "stream": 800,
    },
    quick={
        "steps": (1e-3,),
        "lags": (1, 8),
        "dropouts": (0.0, 0.5),
        "updates": 120,
        "trials": 2,
        "n": 512,
        "batch": 32,
        "stream": 20,
    },
)


def measure(run: Run) -> Results:
    """Run every lag and dropout at every step size, and the three ways to share batches."""
    size = PROTOCOL.size(run.quick)
    results: Results = {"components": K, "size": vars(size)}
    results["lag"] = {str(lag): _on_matrix(run, size, lag=lag) for lag in size.lags}
    results["dropout"] = {
        f"{lost:g}": _on_matrix(run, size, dropout=lost) if lost else results["lag"]["1"]
        for lost in size.dropouts
    }
    results["batches"] = _on_batches(run, size)
    return results


def _on_matrix(run: Run, size: Any, lag: int = 1, dropout: float = 0.0) -> Results:
    """Return the iterations to all components ("taken"), and received broadcasts per iteration ("heard")."""
    run.progress(f"lag {lag}, dropout {dropout:g}")
    rows = SymmetricRows(jnp.diag(jnp.asarray(testing.exponential(D), jnp.float32)))
    truth, begun = jnp.eye(K, D, dtype=jnp.float32), starts(0, size.trials, K, D)
    one = family(lag=lag, dropout=dropout)
    cost = {}
    for step in size.steps:
        seen = play_trials(one, step, begun, rows, truth, _streak, updates=size.updates, every=1)
        cost[f"{step:g}"] = {"taken": iterations_to_all(seen), "heard": (1 - dropout) / lag}
    return cost


def _on_batches(run: Run, size: Any) -> Results:
    """Return iterations and streaks for a shared batch, separate batches, and all of these shared."""
    problem = testing.rows_with(testing.exponential(D), size.n)
    truth, begun = jnp.asarray(problem.components[:K], jnp.float32), starts(0, size.trials, K, D)
    kept: Results = {"step": STEP, "runs": {}}
    for name, read in (("shared", size.batch), ("own", K * size.batch), ("all", K * size.batch)):
        run.progress(f"batches: {NAMES[name]}")
        # The mean of a player's M is the same for every batch size, so that step sizes are comparable.
        each = size.batch if name == "own" else read
        rows = jnp.asarray(problem.data * math.sqrt(size.n / each), jnp.float32)
        order = orders(0, size.trials, size.n, read, size.stream)
        one = family(own_batches=name == "own")
        seen = play_trials(
            one, STEP, begun, rows, truth, _streak, updates=size.stream, every=1, order=order
        )
        every = max(1, size.stream // 200)
        kept["runs"][name] = {
            "taken": iterations_to_all(seen),
            "streak": mean_curve(seen[:, ::every]),
        }
        kept["iterations"] = list(range(1, size.stream + 1, every))
    return kept


def _streak(components: jax.Array, truth: jax.Array) -> jax.Array:
    return metrics.streak_of(metrics.angular_error(components, truth))


def iterations_to_all(seen: np.ndarray) -> list[int | None]:
    """Return the first iteration with all components in each trial, for streaks (trials, updates)."""
    return [int(1 + one.argmax()) if one.any() else None for one in seen == K]


def draw(results: Results) -> Figure:
    """Draw the cost of lag, of dropout, and of separate batches."""
    means = {
        kind: {
            step: [
                (float(x), *mean, broadcasts(cost[step]))
                for x, cost in results[kind].items()
                if (mean := average(cost[step]))
            ]
            for step in results["lag"]["1"]
        }
        for kind in ("lag", "dropout")
    }
    return draw_broadcasts(means, results["batches"], NAMES, K)
