"""Claims and summary of `decentralised`."""

from __future__ import annotations

import math

import numpy as np

from reproduction.base import Claim, Results, holds_if
from reproduction.curves import log_slope, mean_and_error
from reproduction.experiments.decentralised_trials import D, K

BEYOND = 2.0
"""Runs differ if they do by this many standard errors."""
PROPORTIONAL = 0.25
"""Iterations grow in proportion to the lag if their slope on logarithmic axes is 1 within this."""


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


def log_factor(cost: Results, other: Results) -> tuple[float, float]:
    """Return the logarithm of the ratio of iterations to those of another run, and its standard error.

    The mean over trials, which start from the same players. Infinite if a trial did not find all components.
    """
    if None in cost["taken"] or None in other["taken"]:
        return math.inf, 0.0
    ratios = np.asarray(cost["taken"], np.float64) / np.asarray(other["taken"], np.float64)
    mean, error = mean_and_error(np.log(ratios))
    return float(mean), float(error)


def factor(cost: Results, other: Results) -> float:
    """Return the ratio of iterations to those of another run: the geometric mean over trials."""
    return math.exp(log_factor(cost, other)[0])


def takes_more(cost: Results, other: Results) -> bool:
    """Return whether a run takes more iterations than another, beyond standard errors."""
    mean, error = log_factor(cost, other)
    return mean > BEYOND * error


def hears_less(cost: Results, other: Results) -> bool:
    """Return whether a run receives fewer broadcasts than another, beyond standard errors."""
    mean, error = log_factor(cost, other)
    return mean + math.log(cost["heard"] / other["heard"]) < -BEYOND * error


def claims(results: Results) -> list[Claim]:
    """Compare the outlook of the conclusion, and data-parallel updates, with the results."""
    runs = results["batches"]["runs"]
    more, error = log_factor(runs["own"], runs["shared"])
    low, high = math.exp(more - BEYOND * error), math.exp(more + BEYOND * error)
    outlook = {
        "lag": "Introducing lag into broadcasts may improve efficiency.",
        "dropout": "Broadcasting with dropout may improve efficiency.",
    }
    return [
        *(
            one(results, kind, claim)
            for kind, claim in outlook.items()
            for one in (_in_broadcasts, _in_iterations)
        ),
        Claim(
            "A player can update with respect to batches of its own, as in data-parallel training.",
            f"Iterations to all {K}: {_iterations(runs['own'])} with a batch for each player, "
            f"{_iterations(runs['shared'])} with one shared batch of that size, a mean ratio of "
            f"{math.exp(more):.2f} over trials, {low:.2f} to {high:.2f} within {BEYOND:g} standard errors (holds "
            "if every trial finds all components, and the ratio is not above 1 beyond that).",
            holds_if(average(runs["own"]) is not None and low <= 1),
            "players that find all components within pi/8, on batches of a stream",
        ),
    ]


def _in_broadcasts(results: Results, kind: str, claim: str) -> Claim:
    """Test whether a lag or dropout saves broadcasts, at every step size."""
    costs = results[kind]
    first, *others = costs
    parts = [
        f"{step}: {broadcasts(costs[others[-1]][step]):.0f} instead of {broadcasts(full):.0f}"
        for step, full in costs[first].items()
    ]
    return Claim(
        claim,
        f"Broadcasts until all {K} are found with a {kind} of {others[-1]}, at step size {'; '.join(parts)} (holds "
        f"if every {kind} needs fewer than none by {BEYOND:g} standard errors, at every step size).",
        holds_if(
            all(
                hears_less(costs[one][step], full)
                for step, full in costs[first].items()
                for one in others
            )
        ),
        "efficiency as broadcasts until all components are within pi/8",
    )


def _in_iterations(results: Results, kind: str, claim: str) -> Claim:
    """Test whether a lag or dropout saves iterations, at any step size."""
    costs = results[kind]
    first, *others = costs
    faster = [
        f"{one} at {step}"
        for step, full in costs[first].items()
        for one in others
        if takes_more(full, costs[one][step])
    ]
    parts = [
        f"{step}: {factor(costs[others[-1]][step], full):.1f} times"
        for step, full in costs[first].items()
    ]
    return Claim(
        claim,
        f"Iterations until all {K} are found with a {kind} of {others[-1]}, at step size {'; '.join(parts)} those "
        f"of none; values with fewer iterations than none by {BEYOND:g} standard errors: "
        f"{', '.join(faster) or 'none'} (holds if there are any).",
        holds_if(bool(faster)),
        "efficiency as iterations until all components are within pi/8, as if broadcasts cost nothing",
    )


def _iterations(cost: Results) -> str:
    mean = average(cost)
    if mean is None:
        return f"more than were run ({cost['taken'].count(None)} trials)"
    return f"{mean[0]:.0f} (± {mean[1]:.0f})"


def summary(results: Results) -> str:
    """Describe the cost and the saving of fewer broadcasts, and of separate batches."""
    runs = results["batches"]["runs"]
    costly = ", ".join(
        f"{first_costly(results, step) or 'none'} at step size {step}"
        for step in results["lag"]["1"]
    )
    fewest = min(broadcasts(cost) for costs in results["lag"].values() for cost in costs.values())
    enough = "less than" if fewest < results["components"] - 1 else "at least"
    return (
        f"The shortest lag that takes more iterations than none, by {BEYOND:g} standard errors, is {costly}. "
        f"{_growth(results)} The fewest broadcasts of any lag are {fewest:.1f}, {enough} one for each of the "
        f"{K - 1} parents; an update passes down the hierarchy by one player per broadcast. {_at_random(results)} "
        f"On batches of {results['size']['batch']} rows at step size {results['batches']['step']:g}, all {K} "
        f"components take {_iterations(runs['own'])} iterations with a batch for each player, "
        f"{_iterations(runs['shared'])} with one for all, and {_iterations(runs['all'])} if all players see all "
        f"{K} batches."
    )


def first_costly(results: Results, step: str) -> str | None:
    """Return the shortest lag that takes more iterations than none, beyond standard errors."""
    none = results["lag"]["1"][step]
    return next((lag for lag, cost in results["lag"].items() if takes_more(cost[step], none)), None)


def _growth(results: Results) -> str:
    """Describe how iterations grow from the first lag on that costs some: in proportion or not."""
    slopes = {}
    for step in results["lag"]["1"]:
        costly = first_costly(results, step)
        means = {int(lag): average(cost[step]) for lag, cost in results["lag"].items()}
        points = [(lag, mean[0]) for lag, mean in means.items() if mean]
        points = [point for point in points if costly and point[0] >= int(costly)]
        if len(points) > 1:
            slopes[step] = log_slope(*zip(*points, strict=True))
    if not slopes:
        return "There are too few such lags to see how iterations grow."
    said = []
    for step, one in slopes.items():
        faster = "faster than" if one > 1 else "more slowly than"
        how = "in proportion to" if abs(one - 1) <= PROPORTIONAL else faster
        said.append(f"{how} the lag at step size {step} (slope {one:.2f} on logarithmic axes)")
    return f"From these lags on iterations grow {', and '.join(said)}."


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
        f"{results['size']['trials']} trials, each with its own losses. The paper gives no experiment: it says "
        "that lag and dropout may improve efficiency, and does not define it. Two readings are judged, by the "
        "number of broadcasts and by the number of iterations until all components are within pi/8."
    )
