"""Handwritten digits in batches of 1024, 512 and 256: streaks and subspace distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.algorithms import GHA, Alpha, Krasulina, Mu, Oja
from reproduction import mnist_images
from reproduction.base import Results, Run
from reproduction.curves import mean_and_error, rounded
from reproduction.experiments.mnist_figure import draw_digits as draw
from reproduction.experiments.mnist_summary import reading, summary
from reproduction.experiments.mnist_text import claims
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
from reproduction.protocol import GRID, HELD_OUT, Protocol, Runs, tune
from reproduction.trials import Family, best_response, eigengame, remembered, seeded_runs

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

STEPS = (5e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 1e-3)
"""A finer grid, between and around the paper's step sizes."""

PROTOCOL = Protocol(
    # For the algorithms `compared`, at the largest batches: `finer` step sizes, and `longer` passes at some step
    # sizes of the paper.
    full={
        "rows": 60_000,
        "k": 16,
        "batches": (1024, 512, 256),
        "passes": 10,
        "points": 60,
        "trials": 10,
        "played": {
            "centred": tuple(ALGORITHMS),
            "uncentred": tuple(name for name in ALGORITHMS if name not in ("mu", "best response")),
        },
        "finer": STEPS,
        "compared": ("EigenGame", "Oja"),
        "longer": 40,
        "longer_steps": (1e-3, 1e-4),
    },
    quick={
        "rows": 2048,
        "k": 4,
        "batches": (256, 128),
        "passes": 2,
        "points": 4,
        "trials": 2,
        "played": dict.fromkeys(
            ("centred", "uncentred"), ("EigenGame", "GHA", "Krasulina", "Oja", "remembered")
        ),
        "finer": (1e-4, 1e-3),
        "longer": 4,
    },
)


def measure(run: Run) -> Results:
    """Run all algorithms at every batch size, in both readings, and a finer grid without centring."""
    size = PROTOCOL.size(run.quick)
    images = mnist_images.load(run.data)[: size.rows]
    results: Results = {"components": size.k, "size": vars(size), "readings": {}}
    for centring, read in mnist_images.readings(images).items():
        values, truth = truth_of(read, size.k)
        rows = jnp.asarray(read)
        panels: Results = {}
        for batch in size.batches:
            panels[str(batch)] = {"runs": {}}
            for name in size.played[centring]:
                run.progress(f"{centring}, batches of {batch}: {name}")
                panels[str(batch)]["runs"][name] = _tuned(name, rows, truth, size, batch)
        results["readings"][centring] = {
            "eigenvalues": rounded(values[:2] / len(read)),
            "panels": panels,
        }
        if centring == "uncentred":
            results["finer"] = _finer(run, rows, truth, size)
    return results


def _tuned(name: str, rows: jax.Array, truth: Truth, size: Any, batch: int) -> Results:
    """Return the record of one algorithm at one batch size."""
    family, grid = ALGORITHMS[name]
    updates = size.passes * (len(rows) // batch)
    every = max(1, updates // size.points)
    runs = _runs(family, rows, truth, size, batch, updates, every)
    tuned = tune(runs, _score_by(name), grid)
    streaks = _streaks_by(name)(tuned.shown["best"])
    kept = tuned.record(
        updates,
        every,
        {"streak": _streaks_by(name), "distance": distances},
        runtime=rounded(tuned.seconds / size.trials, 3),
        areas={
            "streak": rounded(streaks.mean(axis=1)),
            "distance": rounded(distances(tuned.shown["best"]).mean(axis=1)),
        },
    )
    if name == "Krasulina":
        settled = metrics.streak_of(settled_angles(tuned.shown["best"]))
        kept["settled"] = rounded(settled[:, -1].mean())
    return kept


def _finer(run: Run, rows: jax.Array, truth: Truth, size: Any) -> Results:
    """Return the outcome of each step size of a finer grid at the largest batches, and of longer runs."""
    batch = size.batches[0]
    finer: Results = {"batch": batch, "passes": size.longer, "steps": {}, "longer": {}}
    for name in size.compared:
        for kind, passes, steps in (
            ("steps", size.passes, size.finer),
            ("longer", size.longer, size.longer_steps),
        ):
            run.progress(f"{passes} passes, {len(steps)} step sizes, batches of {batch}: {name}")
            updates = passes * (len(rows) // batch)
            every = max(1, updates // size.points)
            runs = _runs(ALGORITHMS[name][0], rows, truth, size, batch, updates, every)
            finer[kind][name] = {
                f"{step:g}": {
                    "held out": _outcome(runs(step, HELD_OUT)),
                    "shown": _outcome(runs(step, 0)),
                }
                for step in steps
            }
    return finer


def _runs(
    family: Family,
    rows: jax.Array,
    truth: Truth,
    size: Any,
    batch: int,
    updates: int,
    every: int,
) -> Runs:
    """Return the function that runs all trials at a step size."""
    return seeded_runs(
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


def _outcome(seen: Products) -> Results:
    """Return the mean streak over the run, and mean and standard error of the final streak and distance."""
    streaks = metrics.streak_of(angles(seen))
    ends = {"streak": streaks[:, -1], "distance": distances(seen)[:, -1]}
    return {"area": rounded(streaks.mean())} | {
        kind: dict(zip(("mean", "error"), map(rounded, mean_and_error(end)), strict=True))
        for kind, end in ends.items()
    }


def _score_by(name: str) -> Callable[[Products], float]:
    """Return the score of step sizes: for Krasulina, which finds only a subspace, minus the distance."""
    if name == "Krasulina":
        return lambda seen: -float(distances(seen).mean())
    return lambda seen: float(_streaks_by(name)(seen).mean())


def _streaks_by(name: str) -> Callable[[Products], np.ndarray]:
    """Return the function that counts streaks: Krasulina's players are first matched to the components."""
    angles_of = matched_angles if name == "Krasulina" else angles
    return lambda seen: metrics.streak_of(angles_of(seen))
