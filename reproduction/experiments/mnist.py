"""Handwritten digits in batches of 1024, 512 and 256: streaks and subspace distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.algorithms import GHA, Alpha, Krasulina, Mu, Oja
from reproduction import mnist_images
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.experiments.mnist_text import claims, reading, summary
from reproduction.figures import add_legend, draw_runs, panels
from reproduction.products import (
    Products,
    Truth,
    angles,
    distances,
    matched_angles,
    products,
    settled_angles,
    truth_of,
)
from reproduction.protocol import GRID, Protocol, tune
from reproduction.trials import Family, best_response, eigengame, remembered, seeded_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "MNIST: 16 components of handwritten digits"
PAPER = "fig:mnist, fig:gradient_bias"

ALGORITHMS: Mapping[str, tuple[Family, tuple[float, ...] | None]] = {
    "EigenGame": (eigengame, GRID),
    "EigenGame^R": (Alpha, GRID),
    "GHA": (GHA, GRID),
    "Krasulina": (Krasulina, GRID),
    "Oja": (Oja, GRID),
    "mu": (Mu, GRID),
    "remembered": (remembered, None),
    "best response": (best_response, None),
}
"""Algorithms, with the step sizes to choose from."""

PROTOCOL = Protocol(
    full={
        "rows": 60_000,
        "k": 16,
        "batches": (1024, 512, 256),
        "passes": 10,
        "points": 60,
        "trials": 10,
        "played": tuple(ALGORITHMS),
    },
    quick={
        "rows": 2048,
        "k": 4,
        "batches": (256,),
        "passes": 2,
        "points": 4,
        "trials": 2,
        "played": ("EigenGame", "Krasulina", "Oja", "remembered"),
    },
)


def measure(run: Run) -> Results:
    """Run all algorithms at every batch size."""
    size = PROTOCOL.size(run.quick)
    images = mnist_images.load(run.data)[: size.rows]
    _, truth = truth_of(images, size.k)
    rows = jnp.asarray(images)
    results: Results = {"components": size.k, "size": vars(size), "panels": {}}
    for batch in size.batches:
        panel: Results = {"runs": {}}
        for name in size.played:
            run.progress(f"batches of {batch}: {name}")
            panel["runs"][name] = _tuned(name, rows, truth, size, batch)
        results["panels"][str(batch)] = panel
    return results


def _tuned(name: str, rows: jax.Array, truth: Truth, size: Any, batch: int) -> Results:
    """Return the record of one algorithm at one batch size."""
    family, grid = ALGORITHMS[name]
    updates = size.passes * (len(rows) // batch)
    every = max(1, updates // size.points)
    runs = seeded_runs(
        family,
        rows,
        truth,
        products,
        k=size.k,
        trials=size.trials,
        updates=updates,
        every=every,
        batch=batch,
    )
    tuned = tune(runs, _score_by(name), grid)
    kept = tuned.record(
        updates,
        every,
        {"streak": _streaks_by(name), "distance": distances},
        runtime=rounded(tuned.seconds / size.trials, 3),
    )
    if name == "Krasulina":
        settled = metrics.streak_of(settled_angles(tuned.shown["best"]))
        kept["settled"] = rounded(settled[:, -1].mean())
    return kept


def _score_by(name: str) -> Callable[[Products], float]:
    """Return the score of step sizes: for Krasulina, which finds only a subspace, minus the distance."""
    if name == "Krasulina":
        return lambda seen: -float(distances(seen).mean())
    return lambda seen: float(_streaks_by(name)(seen).mean())


def _streaks_by(name: str) -> Callable[[Products], np.ndarray]:
    """Return the function that counts streaks: Krasulina's players are first matched to the components."""
    angles_of = matched_angles if name == "Krasulina" else angles
    return lambda seen: metrics.streak_of(angles_of(seen))


def draw(results: Results) -> Figure:
    """Draw streaks on the left and subspace distances on the right, one row per batch size."""
    figure, axes = panels(2, rows=len(results["panels"]), width=3.6, height=2.4)
    for (left, right), (batch, panel) in zip(axes, results["panels"].items(), strict=True):
        per = results["size"]["rows"] // int(batch)
        draw_runs(left, panel, "streak", per=per)
        draw_runs(right, panel, "distance", per=per)
        left.set_ylim(0, results["components"] * 1.04)
        right.set_yscale("log")
        left.set(title=f"batches of {batch}", ylabel="longest streak")
        right.set(title=f"batches of {batch}", ylabel="subspace distance")
    for one in axes[-1]:
        one.set_xlabel("passes")
    add_legend(figure, next(iter(results["panels"].values()))["runs"])
    return figure
