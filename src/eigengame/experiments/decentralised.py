"""What it costs to talk less: broadcasts that lag or are lost, and batches of each player's own.

Players look for the first 8 components of the exponential spectrum, on M itself for lag and dropout, and on
batches where each player has its own. The cost is the iterations until all 8 are within pi/8, the saving the
broadcasts until then.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.experiments._apart import family
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._broadcast_figure import draw_broadcasts
from eigengame.experiments._protocol import curve
from eigengame.experiments._trials import orders, play_trials, starts
from eigengame.game import SymmetricRows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Broadcasts that lag or are lost, and batches of one's own"
PAPER = "Sec. Method (A decentralized algorithm), Sec. Conclusion (Scale)"

K, D = 8, 50
STEP = 1e-4
"""The step size on batches."""
DEARER = 1.1
"""Up to so many times the iterations, nothing is lost."""
NAMES = {
    "shared": "one batch for all players",
    "own": "a batch for each player",
    "all": "all those batches for all",
}


class Size(NamedTuple):
    """How much is played: on M for `updates`, on batches of `batch` out of n rows for `stream`."""

    steps: tuple[float, ...]
    lags: tuple[int, ...]
    dropouts: tuple[float, ...]
    updates: int
    trials: int
    n: int
    batch: int
    stream: int


FULL = Size(
    steps=(1e-3, 1e-4, 1e-5),
    lags=(1, 2, 4, 8, 16, 32, 64),
    dropouts=(0.0, 0.1, 0.25, 0.5, 0.75, 0.9),
    updates=8000,
    trials=10,
    n=20_480,
    batch=128,
    stream=800,
)
QUICK = Size((1e-3,), (1, 8), (0.0, 0.5), updates=120, trials=2, n=512, batch=32, stream=20)


def measure(run: Run) -> Results:
    """Play with every lag and dropout at every step size, and with batches of one's own."""
    size = QUICK if run.quick else FULL
    results: Results = {"components": K, "size": size._asdict()}
    results["lag"] = {str(lag): _on_matrix(run, size, lag=lag) for lag in size.lags}
    results["dropout"] = {
        f"{lost:g}": _on_matrix(run, size, dropout=lost) if lost else results["lag"]["1"]
        for lost in size.dropouts
    }
    results["batches"] = _on_batches(run, size)
    return results


def _on_matrix(run: Run, size: Size, lag: int = 1, dropout: float = 0.0) -> Results:
    """Return the iterations to all components, and the share of them after which a player is heard."""
    run.say(f"lag {lag}, dropout {dropout:g}")
    rows = SymmetricRows(jnp.diag(jnp.asarray(testing.exponential(D), jnp.float32)))
    truth, begun = jnp.eye(K, D, dtype=jnp.float32), starts(0, size.trials, K, D)
    one = family(lag=lag, dropout=dropout)
    cost = {}
    for step in size.steps:
        seen = play_trials(one, step, begun, rows, truth, _streak, updates=size.updates, every=1)
        cost[f"{step:g}"] = {"taken": reaching(seen), "heard": (1 - dropout) / lag}
    return cost


def _on_batches(run: Run, size: Size) -> Results:
    """Return iterations and streaks where players share a batch, have their own, or share all of those."""
    problem = testing.rows_with(testing.exponential(D), size.n)
    truth, begun = jnp.asarray(problem.components[:K], jnp.float32), starts(0, size.trials, K, D)
    kept: Results = {"step": STEP, "runs": {}}
    for name, read in (("shared", size.batch), ("own", K * size.batch), ("all", K * size.batch)):
        run.say(f"batches: {NAMES[name]}")
        # A player's batch, whatever its size, is M on average: step sizes mean the same.
        each = size.batch if name == "own" else read
        rows = jnp.asarray(problem.data * math.sqrt(size.n / each), jnp.float32)
        order = orders(0, size.trials, size.n, read, size.stream)
        one = family(own_batches=name == "own")
        seen = play_trials(
            one, STEP, begun, rows, truth, _streak, updates=size.stream, every=1, order=order
        )
        every = max(1, size.stream // 200)
        kept["runs"][name] = {"taken": reaching(seen), "streak": curve(seen[:, ::every])}
        kept["iterations"] = list(range(1, size.stream + 1, every))
    return kept


def _streak(components: jax.Array, truth: jax.Array) -> jax.Array:
    return metrics.streak_of(metrics.angular_error(components, truth))


def reaching(seen: np.ndarray) -> list[int | None]:
    """Return the iteration at which each trial's streak, of shape (trials, updates), is first whole."""
    whole = seen == K
    return [int(1 + one.argmax()) if one.any() else None for one in whole]


def average(cost: Results) -> tuple[float, float] | None:
    """Return mean iterations and their standard error, or None where a trial did not come to the end."""
    if None in cost["taken"]:
        return None
    taken = np.asarray(cost["taken"], np.float64)
    return float(taken.mean()), float(taken.std(ddof=1) / math.sqrt(taken.size))


def broadcasts(cost: Results) -> float:
    """Return the broadcasts by which a player was heard before the end, infinite if it did not come."""
    mean = average(cost)
    return math.inf if mean is None else cost["heard"] * mean[0]


def factor(cost: Results, other: Results) -> float:
    """Return how many times the iterations of the other a run takes: the geometric mean over trials.

    Trials start from the same players. Infinite where one did not come to the end.
    """
    if None in cost["taken"] or None in other["taken"]:
        return math.inf
    ratios = np.asarray(cost["taken"], np.float64) / np.asarray(other["taken"], np.float64)
    return float(np.exp(np.mean(np.log(ratios))))


def claims(results: Results) -> list[Claim]:
    """Hold the outlook of the conclusion, and data of each player's own, against the results."""
    runs = results["batches"]["runs"]
    more = factor(runs["own"], runs["shared"])
    return [
        _saving(results, "lag", "Introducing lag into broadcasts may improve efficiency."),
        _saving(results, "dropout", "Broadcasting with dropout may improve efficiency."),
        Claim(
            "A player can update with respect to batches of its own, as in data-parallel training.",
            f"Iterations to all {K}: {_said(runs['own'])} with a batch for each player, "
            f"{_said(runs['shared'])} where all share one of that size, {more:.2f} times as many trial by trial "
            f"(holds up to {DEARER:g}).",
            more <= DEARER,
        ),
    ]


def _saving(results: Results, kind: str, claim: str) -> Claim:
    """Claim that talking less reaches all components with fewer broadcasts, at every step size."""
    costs = results[kind]
    first, *others = costs
    parts = [
        f"{step}: {factor(costs[others[-1]][step], full):.1f} times the iterations, and {broadcasts(full):.0f} "
        f"broadcasts down to {broadcasts(costs[others[-1]][step]):.0f}"
        for step, full in costs[first].items()
    ]
    return Claim(
        claim,
        f"With a {kind} of {others[-1]}, at step size {'; '.join(parts)} (holds where every {kind} needs "
        "fewer broadcasts than none, at every step size).",
        all(
            broadcasts(costs[one][step]) < broadcasts(full)
            for step, full in costs[first].items()
            for one in others
        ),
    )


def _said(cost: Results) -> str:
    mean = average(cost)
    if mean is None:
        return f"more than were played ({cost['taken'].count(None)} trials)"
    return f"{mean[0]:.0f} (± {mean[1]:.0f})"


def draw(results: Results) -> Figure:
    """Draw the cost of lag, of dropout, and of batches of one's own."""
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


def words(results: Results) -> str:
    """Say what talking less costs and saves."""
    size, runs = results["size"], results["batches"]["runs"]
    free = ", ".join(f"{_free(results, step)} at step size {step}" for step in results["lag"]["1"])
    fewest = min(broadcasts(cost) for costs in results["lag"].values() for cost in costs.values())
    return (
        f"EigenGame^R, the first {K} components of the exponential spectrum in {D} dimensions, {size['trials']} "
        "trials, each with losses of its own. The paper leaves open what lag and dropout cost; here they cost "
        f"iterations only when players move far between two broadcasts. A lag of up to {free} takes at most "
        f"{DEARER:g} times the iterations of none. Beyond that, iterations grow in proportion to the "
        "lag: word goes down the hierarchy by one player a broadcast, so that no run does with fewer than "
        f"about one for each parent ({fewest:.1f} broadcasts at the least, {K - 1} parents). {_at_random(results)} "
        f"Right, batches of {size['batch']} rows at step size {results['batches']['step']:g}: with a batch "
        f"of its own for each player it takes {_said(runs['own'])} iterations, with one for all "
        f"{_said(runs['shared'])}, and where everyone sees all {K} batches {_said(runs['all'])}."
    )


def _free(results: Results, step: str) -> str:
    """Return the longest lag up to which none costs more than `DEARER` times the iterations of none."""
    longest = "1"
    for lag, cost in results["lag"].items():
        if factor(cost[step], results["lag"]["1"][step]) > DEARER:
            break
        longest = lag
    return longest


def _at_random(results: Results) -> str:
    """Compare the most that is lost at random where as much is left out in a row."""
    lost = [one for one in results["dropout"] if f"{1 / (1 - float(one)):g}" in results["lag"]][-1]
    same = results["lag"][f"{1 / (1 - float(lost)):g}"]
    pairs = ", ".join(
        f"{_said(results['dropout'][lost][step])} and {_said(cost)} at step size {step}"
        for step, cost in same.items()
    )
    return (
        f"Lost at random and left out in a row, {lost} of all broadcasts take {pairs} iterations."
    )
