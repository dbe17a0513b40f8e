"""Streaks on a 50 x 50 matrix with a given spectrum: shared by `synthetic`, `strict` and `bubble`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.algorithms import GHA, Alpha, Mu, Oja
from eigengame.game import SymmetricRows
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.figures import LINES, add_legend, draw_runs, panels
from reproduction.protocol import GRID, Protocol, tune
from reproduction.trials import Family, best_response, eigengame, seeded_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = 50
"""Features and players: the paper computes all components of a 50 x 50 matrix."""

PROTOCOL = Protocol(
    # Best response takes more time per round and needs fewer: `rounds` in place of `updates`.
    full={"updates": 10_000, "points": 200, "trials": 10, "rounds": 1000},
    quick={"updates": 400, "points": 10, "trials": 2, "rounds": 40},
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


def measure_streaks(
    run: Run,
    problems: Mapping[str, np.ndarray],
    *,
    angle: float,
    counted: np.ndarray | None = None,
) -> Results:
    """Measure the streak of each algorithm on each spectrum.

    M is diagonal, without loss of generality: initial players are uniform on the sphere.

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
    truth = jnp.eye(D, dtype=jnp.float32)
    found: Results = {}
    for spectrum, values in problems.items():
        rows = SymmetricRows(jnp.diag(jnp.asarray(values, jnp.float32)))
        found[spectrum] = {"runs": {}}
        for name, (family, grid) in ALGORITHMS.items():
            run.progress(f"{spectrum} spectrum: {name}")
            every = (size.updates if grid else size.rounds) // size.points
            updates = every * size.points
            runs = seeded_runs(
                family,
                rows,
                truth,
                metrics.angular_error,
                k=D,
                trials=size.trials,
                updates=updates,
                every=every,
            )
            tuned = tune(runs, lambda seen: float(streaks(seen, angle, chosen).mean()), grid)
            found[spectrum]["runs"][name] = tuned.record(
                updates,
                every,
                {
                    "streak": lambda seen: streaks(seen, angle, chosen),
                    "loose": lambda seen: streaks(seen, metrics.STREAK_ANGLE, chosen),
                },
                runtime=rounded(1000 * tuned.seconds / size.trials, 3),
            )
    return {"angle": angle, "components": len(chosen), "size": vars(size), "panels": found}


def streaks(angles: np.ndarray, angle: float, counted: np.ndarray) -> np.ndarray:
    """Return the streak over the counted components, for angles of shape (..., k)."""
    return metrics.streak_of(angles[..., counted], angle)


def draw_streaks(results: Results) -> Figure:
    """Draw one column per spectrum: the best step sizes above, ten times and a tenth of them below."""
    shown = (("best",), ("x10", "x0.1"))
    figure, axes = panels(len(results["panels"]), rows=len(shown), width=3.6, height=2.6)
    for column, (spectrum, panel) in zip(axes.T, results["panels"].items(), strict=True):
        for one, steps in zip(column, shown, strict=True):
            draw_runs(one, panel, steps=steps)
            one.set_ylim(0, results["components"] * 1.04)
        column[0].set_title(f"{spectrum} spectrum")
        column[-1].set_xlabel("iterations")
    for one in axes[:, 0]:
        one.set_ylabel("longest streak")
    names = next(iter(results["panels"].values()))["runs"]
    add_legend(figure, names, tuple(LINES))
    return figure
