"""Curves over iterations: means with standard errors, and the numbers that claims read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.base import Results


def rounded(values: Any, digits: int = 4) -> Any:
    """Return a number or an array (as nested lists) with few digits, which keeps result files small."""
    if np.ndim(values) == 0:
        return float(f"{float(values):.{digits}g}")
    return [rounded(value, digits) for value in np.asarray(values)]


def mean_curve(values: np.ndarray) -> Results:
    """Return mean and standard error over trials, for values of shape (trials, points)."""
    mean, error = mean_and_error(values)
    return {"mean": rounded(mean), "error": rounded(error)}


def mean_and_error(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over the first axis and its standard error, which is 0 for a single trial."""
    values = np.asarray(values, np.float64)
    mean = values.mean(axis=0)
    if len(values) == 1:
        return mean, np.zeros_like(mean)
    return mean, values.std(axis=0, ddof=1) / np.sqrt(len(values))


FLAT = 0.5
"""A mean curve is flat if it changes by at most this over the second half of the run, a factor of 2 in iterations.

On the exponential spectrum, gaps shrink by 13 % from one eigenvalue to the next. A streak that the gaps limit gains
almost five components whenever the iterations double, ten times this value.
"""


def mean_over_run(values: Any, iterations: Sequence[int]) -> np.ndarray:
    """Return the mean over iterations of values measured at unequal distances.

    Each value counts for the iterations since the measurement before it. For measurements at equal distances this
    is their plain mean.

    Parameters
    ----------
    values : array of shape (..., points)
    iterations : sequence of length points

    Returns
    -------
    array of shape (...)
    """
    return np.average(np.asarray(values), axis=-1, weights=np.diff(iterations, prepend=0))


def late_change(iterations: Sequence[float], mean: Sequence[float]) -> float:
    """Return the change of a mean curve over the second half of the run."""
    return float(mean[-1] - np.interp(iterations[-1] / 2, iterations, mean))


def trend(iterations: Sequence[float], mean: Sequence[float], limit: float = float("inf")) -> str:
    """Return whether a mean curve still changes over the second half of the run (see `FLAT`).

    Parameters
    ----------
    iterations, mean : sequences of length points
    limit : float
        Maximum of the curve. A curve that ends there has reached its asymptote, however late.

    Returns
    -------
    {"flat", "still rising", "falling", "at the maximum"}
    """
    change = late_change(iterations, mean)
    if mean[-1] >= limit:
        return "at the maximum"
    if abs(change) <= FLAT:
        return "flat"
    return "still rising" if change > 0 else "falling"


def crossing(iterations: Sequence[float], mean: Sequence[float], level: float) -> float | None:
    """Return when a mean curve first reaches a level, or None.

    Interpolated between two measurements, so that a ratio of two such times is not a ratio of sampling intervals.
    Before the first measurement the curve is taken as constant.
    """
    reached = np.flatnonzero(np.asarray(mean) >= level)
    if not reached.size:
        return None
    last = reached[0]
    if last == 0:
        return float(iterations[0])
    pair = slice(last - 1, last + 1)
    return float(np.interp(level, mean[pair], iterations[pair]))


def first_reach(iterations: Sequence[float], mean: Sequence[float], level: float) -> float | None:
    """Return the first iteration at which a mean curve reaches a level, or None."""
    reached = np.flatnonzero(np.asarray(mean) >= level)
    return float(iterations[reached[0]]) if reached.size else None


def log_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of the least-squares line on logarithmic axes, without points at zero."""
    log_x, log_y = np.log([(a, b) for a, b in zip(x, y, strict=True) if b > 0]).T
    return float(np.polyfit(log_x, log_y, 1)[0])


def final(panel: Results, name: str, kind: str = "streak", step: str = "best") -> float:
    """Return the last value of an algorithm's mean curve."""
    return panel["runs"][name]["curves"][step][kind]["mean"][-1]


def finals(panel: Results) -> dict[str, float]:
    """Return the final mean streak of every algorithm of a panel."""
    return {name: final(panel, name) for name in panel["runs"]}


def run_mean(panel: Results, name: str, kind: str = "streak") -> float:
    """Return the mean of an algorithm's mean curve over the iterations of the whole run."""
    run = panel["runs"][name]
    return float(mean_over_run(run["curves"]["best"][kind]["mean"], run["iterations"]))


def trend_of(panel: Results, name: str, limit: float = float("inf")) -> str:
    """Return the trend of an algorithm's mean streak at the best step size."""
    run = panel["runs"][name]
    return trend(run["iterations"], run["curves"]["best"]["streak"]["mean"], limit)


def chosen_steps(panel: Results) -> dict[str, float]:
    """Return the chosen step sizes of a panel, without algorithms that have none."""
    return {name: run["step"] for name, run in panel["runs"].items() if run["step"] is not None}


def listed(values: Mapping[str, float], form: str = ".1f") -> str:
    """Format named numbers as a list within a sentence."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def count_passes(count: int) -> str:
    """Return a number of passes in words."""
    return f"{count} pass{'' if count == 1 else 'es'}"
