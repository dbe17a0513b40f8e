"""The paper's protocol: a step size chosen on held-out runs, then shown with ten times it and a tenth.

Step sizes come from 1e-3 ... 1e-6, in the convention of Alg. 2: the gradient has its factor 2 and M is the
sum over the rows of a batch. The vectorised listing drops the 2, which would move every step size by 2; the
paper does not say which of the two its grid belongs to, nor what "best performing" measures. Here the best
is the one with the largest mean of the streak over the whole run: a curve that rises early and stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eigengame.experiments._base import Results

GRID = (1e-3, 1e-4, 1e-5, 1e-6)
"""The paper's step sizes."""

TRIED = 1_000_000
"""Seeds of held-out runs begin here, those of the runs shown at 0."""

Runs = Callable[[float, int], Any]
"""Plays all trials of a step size from a first seed on; returns a tree of (trials, points, ...)."""


class Tuned(NamedTuple):
    """What the protocol gives for one algorithm.

    Attributes
    ----------
    step : float or None
        The step size chosen; None for an algorithm without.
    tried : dict
        The score of each step size of the grid on the held-out runs.
    shown : dict
        Measurements of the trials, at "best", and at "x10" and "x0.1" where there is a step size.
    seconds : float
        How long the trials at "best" took, all of them at once, already compiled.
    """

    step: float | None
    tried: dict[str, float]
    shown: dict[str, Any]
    seconds: float = 0.0


def tune(runs: Runs, score: Callable[[Any], float], grid: Sequence[float] | None = GRID) -> Tuned:
    """Choose a step size on held-out runs, and show it on others; `grid=None` for none to choose."""
    tried = {step: score(runs(step, TRIED)) for step in grid or (1.0,)}
    best = max(tried, key=lambda step: tried[step])
    begun = time.perf_counter()
    shown = {"best": runs(best, 0)}
    seconds = time.perf_counter() - begun
    if grid is None:
        return Tuned(None, {}, shown, seconds)
    shown |= {"x10": runs(10 * best, 0), "x0.1": runs(best / 10, 0)}
    scores = {f"{step:g}": rounded([value])[0] for step, value in tried.items()}
    return Tuned(best, scores, shown, seconds)


def curve(values: np.ndarray) -> Results:
    """Return mean and standard error over trials, for values of shape (trials, points)."""
    values = np.asarray(values, np.float64)
    trials = values.shape[0]
    error = (
        values.std(axis=0, ddof=1) / np.sqrt(trials) if trials > 1 else np.zeros(values.shape[1])
    )
    return {"mean": rounded(values.mean(axis=0)), "error": rounded(error)}


def rounded(values: Any, digits: int = 4) -> list[Any]:
    """Return an array as a list of short numbers: files that people open stay small."""
    return [
        rounded(value, digits) if np.ndim(value) else float(f"{float(value):.{digits}g}")
        for value in np.asarray(values)
    ]


def first_reach(iterations: Sequence[float], mean: Sequence[float], level: float) -> float | None:
    """Return the first iteration at which a mean curve has reached a level, or None."""
    reached = np.flatnonzero(np.asarray(mean) >= level)
    return float(iterations[reached[0]]) if reached.size else None
