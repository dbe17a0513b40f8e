"""Streaks on a matrix with a given spectrum: what `synthetic`, `strict` and `bubble` have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.algorithms import GHA, Alpha, Mu, Oja
from eigengame.experiments._base import Results, Run
from eigengame.experiments._families import best_response, eigengame
from eigengame.experiments._figures import draw_runs, panels
from eigengame.experiments._protocol import GRID, Tuned, curve, rounded, tune
from eigengame.experiments._trials import Family, play_trials, starts
from eigengame.game import SymmetricRows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = 50
"""Features and players: the paper looks for all components of M in R^{50 x 50}."""


class Size(NamedTuple):
    """How much is played."""

    updates: int
    points: int
    trials: int
    rounds: int
    """Of best response, which needs few and takes more time for each."""

    def of(self, grid: Any) -> tuple[int, int]:
        """Return the updates of an algorithm, and how many lie between two measurements."""
        updates = self.rounds if grid is None else self.updates
        every = updates // self.points
        return every * self.points, every


FULL = Size(updates=10_000, points=200, trials=10, rounds=1000)
QUICK = Size(updates=400, points=10, trials=2, rounds=40)

PLAYED: Mapping[str, tuple[Family, tuple[float, ...] | None]] = {
    "EigenGame": (eigengame, GRID),
    "EigenGame^R": (Alpha, GRID),
    "GHA": (GHA, GRID),
    "Oja": (Oja, GRID),
    "mu": (Mu, GRID),
    "best response": (best_response, None),
}
"""Who plays, with the step sizes to choose from; best response has none."""


def spectra() -> dict[str, np.ndarray]:
    """Return the paper's two spectra: 1000 to 1 equally spaced, and 10^3 to 10^0 in equal ratios."""
    return {"linear": testing.linear(D), "exponential": testing.exponential(D)}


def measure_streaks(
    run: Run,
    problems: Mapping[str, np.ndarray],
    *,
    angle: float,
    counted: np.ndarray | None = None,
) -> Results:
    """Return the streak of everyone who plays, on each spectrum, by the protocol.

    M is diagonal, which loses nothing: players start anywhere.

    Parameters
    ----------
    run : Run
    problems : dict of spectra of D eigenvalues
    angle : float
        Within which a component is found; step sizes are chosen by it. The streak at the paper's pi/8 is
        kept beside it as "loose".
    counted : array of indices, optional
        The components that the streak is over; all by default.
    """
    size = QUICK if run.quick else FULL
    chosen = np.arange(D) if counted is None else counted
    found: Results = {}
    for spectrum, values in problems.items():
        rows = SymmetricRows(jnp.diag(jnp.asarray(values, jnp.float32)))
        found[spectrum] = {"runs": {}}
        for name, (family, grid) in PLAYED.items():
            run.say(f"{spectrum} spectrum: {name}")
            updates, every = size.of(grid)
            tuned = _tuned(family, grid, rows, size, lambda seen: streaks(seen, angle, chosen))
            found[spectrum]["runs"][name] = {
                "step": tuned.step,
                "tried": tuned.tried,
                "runtime": rounded([1000 * tuned.seconds / size.trials], 3)[0],
                "iterations": list(range(every, updates + 1, every)),
                "curves": {
                    which: {
                        "streak": curve(streaks(seen, angle, chosen)),
                        "loose": curve(streaks(seen, metrics.STREAK_ANGLE, chosen)),
                    }
                    for which, seen in tuned.shown.items()
                },
            }
    return {
        "angle": angle,
        "components": len(chosen),
        "size": size._asdict(),
        "panels": found,
    }


def streaks(angles: np.ndarray, angle: float, counted: np.ndarray) -> np.ndarray:
    """Return the streak over the components counted, for angles of shape (..., k)."""
    return metrics.streak_of(angles[..., counted], angle)


def last(panel: Results, name: str, kind: str = "streak") -> float:
    """Return the mean streak that an algorithm ends with."""
    return panel["runs"][name]["curves"]["best"][kind]["mean"][-1]


def area(panel: Results, name: str, kind: str = "streak") -> float:
    """Return the mean streak of an algorithm over the whole run: early and high is large."""
    return float(np.mean(panel["runs"][name]["curves"]["best"][kind]["mean"]))


def listed(values: Mapping[str, float], form: str = ".1f") -> str:
    """Return named numbers as a list within a sentence."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def draw_streaks(results: Results) -> Figure:
    """Return a panel for each spectrum."""
    figure, axes = panels(len(results["panels"]), width=5.4)
    for one, (spectrum, panel) in zip(axes[0], results["panels"].items(), strict=True):
        draw_runs(one, panel)
        one.set_title(f"{spectrum} spectrum")
        one.set_ylim(0, results["components"] * 1.04)
    axes[0, 0].set_ylabel("longest streak")
    return figure


def _tuned(
    family: Family,
    grid: tuple[float, ...] | None,
    rows: SymmetricRows,
    size: Size,
    streak: Callable[[np.ndarray], np.ndarray],
) -> Tuned:
    """Return the angles (trials, points, k) at the step size with the best streak and its neighbours."""
    truth = jnp.eye(D, dtype=jnp.float32)
    updates, every = size.of(grid)

    def runs(step: float, first_seed: int) -> np.ndarray:
        players = starts(first_seed, size.trials, D, D)
        return play_trials(
            family, step, players, rows, truth, metrics.angular_error, updates=updates, every=every
        )

    return tune(runs, lambda seen: float(streak(seen).mean()), grid)
