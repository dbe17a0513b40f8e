"""How results of `mnist` change with the batch size: distances at one step size, leads over other methods."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from reproduction.base import Results
from reproduction.curves import mean_and_error

BEYOND = 2.0
"""A change counts from this many standard errors on."""

STEP_OF = {"best": 1.0, "x10": 10.0, "x0.1": 0.1}
"""Stored curves, with their step sizes in units of the chosen one."""


class Growth(NamedTuple):
    """A final value at each batch size, with its change from the largest to the smallest batches.

    Attributes
    ----------
    step : float or None
        Step size of all values; None for an algorithm without one.
    means, errors : dict
        Mean and standard error at each batch size.
    """

    step: float | None
    means: dict[str, float]
    errors: dict[str, float]

    @property
    def ratio(self) -> float:
        """The value at the smallest batches over that at the largest."""
        ends = list(self.means.values())
        return ends[-1] / ends[0]

    @property
    def change(self) -> float:
        """The change from the largest to the smallest batches, in standard errors of it."""
        means, errors = list(self.means.values()), list(self.errors.values())
        return in_errors(means[-1] - means[0], float(np.hypot(errors[0], errors[-1])))

    def exceeds(self, other: Growth) -> float:
        """Return by how many standard errors the logarithm of the ratio is above that of another."""
        (ours, error), (theirs, spread) = self._log_ratio(), other._log_ratio()
        return in_errors(ours - theirs, float(np.hypot(error, spread)))

    def _log_ratio(self) -> tuple[float, float]:
        """Return the logarithm of the ratio and its standard error, to first order."""
        relative = [self.errors[batch] / mean for batch, mean in self.means.items()]
        return float(np.log(self.ratio)), float(np.hypot(relative[0], relative[-1]))


def in_errors(difference: float, error: float) -> float:
    """Return a difference in standard errors; infinite for one without error."""
    if error > 0:
        return difference / error
    return 0.0 if difference == 0 else float(np.copysign(np.inf, difference))


def growth(panels: Results, name: str, kind: str, step: float | None = None) -> Growth | None:
    """Return the final values of an algorithm at every batch size, all at one step size.

    Step sizes are chosen for each batch size. Values at different ones would not show the effect of the batch
    size alone, so that one with a stored curve at every batch size is taken.

    Parameters
    ----------
    panels : dict
        Panels of one reading, from the largest to the smallest batches.
    name : str
        Algorithm.
    kind : str
        "streak" or "distance".
    step : float, optional
        Step size. By default the one that is chosen at the most batch sizes.

    Returns
    -------
    Growth, or None if no step size has curves at every batch size
    """
    runs = {batch: panel["runs"][name] for batch, panel in panels.items() if name in panel["runs"]}
    if len(runs) < len(panels):
        return None
    if all(run["step"] is None for run in runs.values()):
        return _growth(None, {batch: run["curves"]["best"] for batch, run in runs.items()}, kind)
    stored = {batch: _by_step(run) for batch, run in runs.items()}
    shared = shared_steps(panels, name)
    if step is None:
        chosen = Counter(_key(run["step"]) for run in runs.values())
        wanted = max(shared, key=lambda one: (chosen[one], one), default=None)
    else:
        wanted = _key(step)
    if wanted is None or wanted not in shared:
        return None
    return _growth(wanted, {batch: one[wanted] for batch, one in stored.items()}, kind)


def shared_steps(panels: Results, name: str) -> list[float]:
    """Return the step sizes of an algorithm that have curves at every batch size, the largest first."""
    stored = [set(_by_step(panel["runs"][name])) for panel in panels.values()]
    return sorted(set.intersection(*stored), reverse=True)


def _growth(step: float | None, curves: Results, kind: str) -> Growth:
    means, errors = (
        {batch: one[kind][part][-1] for batch, one in curves.items()} for part in ("mean", "error")
    )
    return Growth(step, means, errors)


def _by_step(run: Results) -> dict[float, Results]:
    """Return the curves of a run by their step size."""
    return {_key(run["step"] * STEP_OF[which]): one for which, one in run["curves"].items()}


def _key(step: float) -> float:
    """Return a step size without rounding errors of the products."""
    return float(f"{step:.3g}")


def lead(panel: Results, others: tuple[str, ...], kind: str) -> tuple[float, float]:
    """Return EigenGame's mean lead over other methods, over the whole run, and its standard error.

    A lead is a longer streak or a smaller distance. Trials of all methods start from the same players.
    """
    runs, sign = panel["runs"], 1 if kind == "streak" else -1
    ours = np.asarray(runs["EigenGame"]["areas"][kind])
    leads = [sign * (ours - runs[name]["areas"][kind]) for name in others if name in runs]
    mean, error = mean_and_error(np.mean(leads, axis=0))
    return float(mean), float(error)


def early_lead(panels: Results, others: tuple[str, ...], kind: str) -> dict[str, float]:
    """Return EigenGame's mean lead at each batch size, over as many iterations as the largest batches have."""
    end = min(panel["runs"]["EigenGame"]["iterations"][-1] for panel in panels.values())
    sign = 1 if kind == "streak" else -1

    def mean(run: Results) -> float:
        within = np.asarray(run["iterations"]) <= end
        return float(np.asarray(run["curves"]["best"][kind]["mean"])[within].mean())

    return {
        batch: sign
        * float(
            np.mean([mean(panel["runs"]["EigenGame"]) - mean(panel["runs"][one]) for one in others])
        )
        for batch, panel in panels.items()
    }
