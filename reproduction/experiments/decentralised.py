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
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import log_slope, mean_and_error, mean_curve
from reproduction.experiments.decentralised_figure import draw_broadcasts
from reproduction.experiments.decentralised_trials import family
from reproduction.protocol import Protocol
from reproduction.trials import orders, play_trials, starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Delayed or lost broadcasts, and separate batches"
PAPER = "Sec. Method (A decentralized algorithm), Sec. Conclusion (Scale)"

K, D = 8, 50
STEP = 1e-4
"""Step size on batches."""
NO_LOSS = 1.1
"""Up to this many times the iterations, nothing is lost."""
PROPORTIONAL = 0.25
"""Iterations grow in proportion to the lag if their slope on logarithmic axes is 1 within this."""
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


def average(cost: Results) -> tuple[float, float] | None:
    """Return mean iterations and their standard error, or None if a trial did not find all components."""
    if None in cost["taken"]:
        return None
    mean, error = mean_and_error(cost["taken"])
    return float(mean), float(error)


def broadcasts(cost: Results) -> float:
    """Return the received broadcasts until all components are found, infinite if they are not."""
    mean = average(cost)
    return math.inf if mean is None else cost["heard"] * mean[0]


def factor(cost: Results, other: Results) -> float:
    """Return the ratio of iterations to those of another run: the geometric mean over trials.

    Trials start from the same players. Infinite if a trial did not find all components.
    """
    if None in cost["taken"] or None in other["taken"]:
        return math.inf
    ratios = np.asarray(cost["taken"], np.float64) / np.asarray(other["taken"], np.float64)
    return float(np.exp(np.mean(np.log(ratios))))


def claims(results: Results) -> list[Claim]:
    """Compare the outlook of the conclusion, and data-parallel updates, with the results."""
    runs = results["batches"]["runs"]
    more = factor(runs["own"], runs["shared"])
    return [
        _saving(results, "lag", "Introducing lag into broadcasts may improve efficiency."),
        _saving(results, "dropout", "Broadcasting with dropout may improve efficiency."),
        Claim(
            "A player can update with respect to batches of its own, as in data-parallel training.",
            f"Iterations to all {K}: {_iterations(runs['own'])} with a batch for each player, "
            f"{_iterations(runs['shared'])} with one shared batch of that size, a mean ratio of {more:.2f} over "
            f"trials (holds up to {NO_LOSS:g}).",
            holds_if(more <= NO_LOSS),
            "efficiency as broadcasts until all components are within pi/8, batches of a stream",
        ),
    ]


def _saving(results: Results, kind: str, claim: str) -> Claim:
    """Test whether fewer broadcasts reach all components, at every step size."""
    costs = results[kind]
    first, *others = costs
    parts = [
        f"{step}: {factor(costs[others[-1]][step], full):.1f} times the iterations, "
        f"{broadcasts(costs[others[-1]][step]):.0f} broadcasts instead of {broadcasts(full):.0f}"
        for step, full in costs[first].items()
    ]
    return Claim(
        claim,
        f"With a {kind} of {others[-1]}, at step size {'; '.join(parts)} (holds if every {kind} needs fewer "
        "broadcasts than none, at every step size).",
        holds_if(
            all(
                broadcasts(costs[one][step]) < broadcasts(full)
                for step, full in costs[first].items()
                for one in others
            )
        ),
        "efficiency as broadcasts until all components are within pi/8",
    )


def _iterations(cost: Results) -> str:
    mean = average(cost)
    if mean is None:
        return f"more than were run ({cost['taken'].count(None)} trials)"
    return f"{mean[0]:.0f} (± {mean[1]:.0f})"


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


def summary(results: Results) -> str:
    """Describe the cost and the saving of fewer broadcasts, and of separate batches."""
    runs = results["batches"]["runs"]
    free = ", ".join(
        f"{longest_free(results, step)} at step size {step}" for step in results["lag"]["1"]
    )
    fewest = min(broadcasts(cost) for costs in results["lag"].values() for cost in costs.values())
    enough = "less than" if fewest < K - 1 else "at least"
    return (
        f"The longest lag that takes at most {NO_LOSS:g} times the iterations of no lag is {free}. "
        f"{_growth(results)} The fewest broadcasts of any lag are {fewest:.1f}, {enough} one for each of the "
        f"{K - 1} parents; an update passes down the hierarchy by one player per broadcast. {_at_random(results)} "
        f"On batches of {results['size']['batch']} rows at step size {results['batches']['step']:g}, all {K} "
        f"components take {_iterations(runs['own'])} iterations with a batch for each player, "
        f"{_iterations(runs['shared'])} with one for all, and {_iterations(runs['all'])} if all players see all "
        f"{K} batches."
    )


def longest_free(results: Results, step: str) -> str:
    """Return the longest lag up to which no lag costs more than `NO_LOSS` times the iterations of none."""
    longest = "1"
    for lag, cost in results["lag"].items():
        if factor(cost[step], results["lag"]["1"][step]) > NO_LOSS:
            break
        longest = lag
    return longest


def _growth(results: Results) -> str:
    """Describe how iterations grow with longer lags: in proportion or not."""
    slopes = {}
    for step in results["lag"]["1"]:
        free = int(longest_free(results, step))
        means = {int(lag): average(cost[step]) for lag, cost in results["lag"].items()}
        points = [(lag, mean[0]) for lag, mean in means.items() if lag > free and mean]
        if len(points) > 1:
            slopes[step] = log_slope(*zip(*points, strict=True))
    if not slopes:
        return "There are too few longer lags to see how iterations grow."
    said = []
    for step, one in slopes.items():
        faster = "faster than" if one > 1 else "more slowly than"
        how = "in proportion to" if abs(one - 1) <= PROPORTIONAL else faster
        said.append(f"{how} the lag at step size {step} (slope {one:.2f} on logarithmic axes)")
    return f"With longer lags iterations grow {', and '.join(said)}."


def _at_random(results: Results) -> str:
    """Compare the largest dropout that has an equal lag with that lag."""
    lost = [one for one in results["dropout"] if f"{1 / (1 - float(one)):g}" in results["lag"]][-1]
    lag = f"{1 / (1 - float(lost)):g}"
    pairs = ", ".join(
        f"{_iterations(results['dropout'][lost][step])} and {_iterations(cost)} at step size {step}"
        for step, cost in results["lag"][lag].items()
    )
    return (
        f"A dropout of {lost} and the lag of {lag} with as many broadcasts take {pairs} iterations."
    )


def reading(results: Results) -> str:
    """Describe which variant is run."""
    return (
        f"EigenGame^R, the first {K} components of the exponential spectrum in {D} dimensions, "
        f"{results['size']['trials']} trials, each with its own losses. The paper does not quantify efficiency: "
        "here it is the number of broadcasts until all components are within pi/8."
    )
