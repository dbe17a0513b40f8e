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
    """Return the mean of an algorithm's mean curve over the whole run."""
    return float(np.mean(panel["runs"][name]["curves"]["best"][kind]["mean"]))


def chosen_steps(panel: Results) -> dict[str, float]:
    """Return the chosen step sizes of a panel, without algorithms that have none."""
    return {name: run["step"] for name, run in panel["runs"].items() if run["step"] is not None}


def listed(values: Mapping[str, float], form: str = ".1f") -> str:
    """Format named numbers as a list within a sentence."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())
