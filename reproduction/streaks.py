"""Streaks on a 50 x 50 matrix with a given spectrum: shared by `synthetic`, `strict` and `bubble`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.algorithms import GHA, Alpha, Mu, Oja
from reproduction.base import Results, Run
from reproduction.curves import mean_curve, mean_over_run, rounded, trend, trend_of
from reproduction.diagonal_rows import DiagonalRows
from reproduction.figures import LINES, add_legend, draw_runs, panels
from reproduction.protocol import GRID, Protocol, tune
from reproduction.trials import Family, best_response, eigengame, log_points, seeded_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = 50
"""Features and players: the paper computes all components of a 50 x 50 matrix."""

PROTOCOL = Protocol(
    # Best response takes more time per round and needs fewer: `rounds` in place of `updates`. Algorithms whose
    # streak still rises are run again for `longer` iterations, at the chosen step size only.
    full={"updates": 40_000, "points": 150, "trials": 10, "rounds": 1000, "longer": 240_000},
    quick={"updates": 400, "points": 10, "trials": 2, "rounds": 40, "longer": 800},
)

ALGORITHMS: Mapping[str, tuple[Family, tuple[float, ...] | None]] = {
    "EigenGame": (eigengame, GRID),
    "EigenGame^R": (Alpha, GRID),
    "GHA": (GHA, GRID),
    "Oja": (Oja, GRID),
    "mu": (Mu, GRID),
    "best response": (best_response, None),
}
"""Algorithms, with the step sizes to choose from; best response has none."""


def spectra() -> dict[str, np.ndarray]:
    """Return the paper's two spectra: 1000 to 1 equally spaced, and 10^3 to 10^0 in equal ratios."""
    return {"linear": testing.linear(D), "exponential": testing.exponential(D)}


class Seen(NamedTuple):
    """Angles of all trials at all points, shape (trials, points, D), and the seconds that the runs took."""

    angles: np.ndarray
    seconds: float


@functools.cache
def runs_of(
    name: str, spectrum: tuple[float, ...], trials: int, points: tuple[int, ...]
) -> Callable[[float, int], Seen]:
    """Return a function of step size and first seed that runs all trials of an algorithm on a spectrum.

    Runs are kept, so that `synthetic` and `strict` share them if both are run in one process: they have the same
    starts and differ only in the angle.
    """
    runs = seeded_runs(
        ALGORITHMS[name][0],
        DiagonalRows.of(np.asarray(spectrum)),
        jnp.eye(D, dtype=jnp.float32),
        metrics.angular_error,
        k=D,
        trials=trials,
        points=points,
    )

    @functools.cache
    def seen(step: float, first_seed: int) -> Seen:
        begun = time.perf_counter()
        angles = runs(step, first_seed)
        return Seen(angles, time.perf_counter() - begun)

    return seen


def measure_streaks(
    run: Run,
    problems: Mapping[str, np.ndarray],
    *,
    angle: float,
    counted: np.ndarray | None = None,
) -> Results:
    """Measure the streak of each algorithm on each spectrum.

    M is diagonal, without loss of generality: initial players are uniform on the sphere. Measurements are at
    iterations in equal ratios.

    Parameters
    ----------
    run : Run
    problems : dict of spectra of D eigenvalues
    angle : float
        Largest angle of a component that counts as found. Step sizes are chosen by it. The streak at pi/8 is
        stored as "loose" as well.
    counted : array of indices, optional
        Components over which the streak is counted; all by default.
    """
    size = PROTOCOL.size(run.quick)
    chosen = np.arange(D) if counted is None else counted
    found: Results = {}
    for spectrum, values in problems.items():
        found[spectrum] = {"runs": {}}
        for name, (_, grid) in ALGORITHMS.items():
            run.progress(f"{spectrum} spectrum: {name}")
            points = tuple(log_points(size.updates if grid else size.rounds, size.points))
            runs = runs_of(name, tuple(values.tolist()), size.trials, points)

            def score(seen: Seen, points: tuple[int, ...] = points) -> float:
                return float(mean_over_run(streaks(seen.angles, angle, chosen), points).mean())

            tuned = tune(runs, score, grid)
            found[spectrum]["runs"][name] = tuned.record(
                points[-1],
                1,
                {
                    "streak": lambda seen: streaks(seen.angles, angle, chosen),
                    "loose": lambda seen: streaks(seen.angles, metrics.STREAK_ANGLE, chosen),
                },
                points=points,
                runtime=rounded(1000 * tuned.shown["best"].seconds / size.trials, 3),
            )
    results = {"angle": angle, "components": len(chosen), "size": vars(size), "panels": found}
    add_longer_runs(run, results, problems, chosen)
    return results


def add_longer_runs(
    run: Run, results: Results, problems: Mapping[str, np.ndarray], counted: np.ndarray
) -> None:
    """Run algorithms again for longer, from the same starts, if their mean streak still rises at the end.

    Adds "longer" to their records: iterations, and the mean streak at the chosen step size.
    """
    size = results["size"]
    points = tuple(log_points(size["longer"], size["points"]))
    for spectrum, panel in results["panels"].items():
        for name, kept in panel["runs"].items():
            rising = trend_of(panel, name, results["components"]) == "still rising"
            if kept["step"] is None or not rising:
                continue
            run.progress(f"{spectrum} spectrum: {name}, {points[-1]} iterations")
            runs = runs_of(name, tuple(problems[spectrum].tolist()), size["trials"], points)
            seen = streaks(runs(kept["step"], 0).angles, results["angle"], counted)
            kept["longer"] = {"iterations": list(points), "streak": mean_curve(seen)}


class Asymptote(NamedTuple):
    """End of the longest run of an algorithm at its best step size.

    Attributes
    ----------
    end : float
        Final mean streak.
    trend : str
        See `curves.trend`.
    iterations : int
        Length of the run.
    """

    end: float
    trend: str
    iterations: int

    @property
    def settled(self) -> bool:
        """Whether the curve is flat or at its maximum."""
        return self.trend in ("flat", "at the maximum")

    def __str__(self) -> str:
        return f"{self.end:.1f} after {self.iterations} iterations, {self.trend}"


def asymptote(results: Results, spectrum: str, name: str) -> Asymptote:
    """Return the end of the longest run of an algorithm."""
    kept = results["panels"][spectrum]["runs"][name]
    longer = kept.get("longer")
    x = longer["iterations"] if longer else kept["iterations"]
    mean = (longer or kept["curves"]["best"])["streak"]["mean"]
    return Asymptote(mean[-1], trend(x, mean, results["components"]), x[-1])


def longer_runs(results: Results) -> str:
    """Return a sentence on the longer runs."""
    found = [
        f"{name} {asymptote(results, spectrum, name)} ({spectrum} spectrum)"
        for spectrum, panel in results["panels"].items()
        for name, kept in panel["runs"].items()
        if "longer" in kept
    ]
    if not found:
        return "No mean curve at these step sizes still rises at the end of the run."
    return (
        f"Mean curves that still rise after {results['size']['updates']} iterations end, in longer runs, at: "
        f"{'; '.join(found)}."
    )


def length_of(results: Results) -> str:
    """Return the length of the runs and the convention of step sizes, for the reading of a claim."""
    return f"runs of {results['size']['updates']} iterations, step sizes of Alg. 2"


def streaks(angles: np.ndarray, angle: float, counted: np.ndarray) -> np.ndarray:
    """Return the streak over the counted components, for angles of shape (..., k)."""
    return metrics.streak_of(angles[..., counted], angle)


ROWS = {"best step size": ("best",), "other step sizes": ("x10", "x0.1")}
"""Rows of the figure: the step sizes shown, by title."""


def draw_streaks(results: Results) -> Figure:
    """Draw one column per spectrum: the best step sizes above, ten times and a tenth of them below."""
    figure, axes = panels(
        len(results["panels"]), rows=len(ROWS), width=3.6, height=2.5, shared=True
    )
    for column, (spectrum, panel) in zip(axes.T, results["panels"].items(), strict=True):
        for one, (title, steps) in zip(column, ROWS.items(), strict=True):
            draw_runs(one, panel, steps=steps)
            # A margin at both ends, so that curves at 0 and at the maximum are not cut.
            one.set_ylim(-0.04 * results["components"], 1.04 * results["components"])
            one.set_title(f"{spectrum} spectrum, {title}", fontsize=9)
        column[-1].set_xlabel("iterations")
    for one in axes[:, 0]:
        one.set_ylabel("longest streak")
    names = next(iter(results["panels"].values()))["runs"]
    add_legend(figure, names, tuple(LINES))
    return figure
