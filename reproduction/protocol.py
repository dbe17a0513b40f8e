"""The paper's protocol: choose a step size on held-out runs, then show it with ten times and a tenth of it.

Step sizes come from 1e-3, 1e-4, 1e-5, 1e-6 in the convention of Alg. 2: the gradient has its factor 2 and M is
the sum over the rows of a batch. The vectorised listing omits the 2, which would double every step size. The
paper does not say which convention its grid belongs to, nor how "best performing" is measured. Here the best
step size has the largest mean streak over the whole run, which rewards curves that rise early and stay high. It is
a mean over iterations: measurements at unequal distances are weighted by them (`curves.mean_over_run`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

from reproduction.curves import mean_curve, rounded

GRID = (1e-3, 1e-4, 1e-5, 1e-6)
"""The paper's step sizes."""

HELD_OUT = 1_000_000
"""First seed of the held-out runs. The reported runs start at seed 0."""

Runs = Callable[[float, int], Any]
"""Runs all trials at a step size from a first seed. Returns a tree of arrays (trials, points, ...)."""


@dataclass(frozen=True)
class Protocol:
    """Sizes of an experiment, such as trials and iterations.

    Attributes
    ----------
    full : dict
        Sizes of a full run.
    quick : dict
        Those that differ in a quick run.
    """

    full: Mapping[str, Any]
    quick: Mapping[str, Any]

    def size(self, quick: bool = False) -> SimpleNamespace:
        """Return the sizes as attributes; `vars()` of them is what the results store."""
        return SimpleNamespace(**{**self.full, **(self.quick if quick else {})})


class Tuned(NamedTuple):
    """Outcome of the protocol for one algorithm.

    Attributes
    ----------
    step : float or None
        Chosen step size; None for an algorithm without one.
    tried : dict
        Score of each step size of the grid on the held-out runs.
    shown : dict
        Measurements at "best", and at "x10" and "x0.1" if there is a step size.
    seconds : float
        Time of all trials at "best" together, without compilation.
    """

    step: float | None
    tried: dict[str, float]
    shown: dict[str, Any]
    seconds: float = 0.0

    def record(
        self,
        updates: int,
        every: int,
        kinds: Mapping[str, Callable[[Any], Any]],
        *,
        points: Sequence[int] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return what the results store: step sizes, iterations, and a mean curve of each kind.

        `points` are the iterations of the measurements if they are not every `every` updates.
        """
        return {
            "step": self.step,
            "tried": self.tried,
            "iterations": list(points or range(every, updates + 1, every)),
            "curves": {
                which: {kind: mean_curve(values(seen)) for kind, values in kinds.items()}
                for which, seen in self.shown.items()
            },
            **more,
        }


def tune(runs: Runs, score: Callable[[Any], float], grid: Sequence[float] | None = GRID) -> Tuned:
    """Choose a step size by the score on held-out runs and run it on others.

    With `grid=None` the algorithm has no step size.
    """
    tried = {step: score(runs(step, HELD_OUT)) for step in grid or (1.0,)}
    best = max(tried, key=lambda step: tried[step])
    begun = time.perf_counter()
    shown = {"best": runs(best, 0)}
    seconds = time.perf_counter() - begun
    if grid is None:
        return Tuned(None, {}, shown, seconds)
    shown |= {"x10": runs(10 * best, 0), "x0.1": runs(best / 10, 0)}
    return Tuned(best, {f"{step:g}": rounded(tried[step]) for step in tried}, shown, seconds)
