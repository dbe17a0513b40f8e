"""Rayleigh quotients and utilities of players on MNIST: the paper's scree plot, compared with the truth.

The components of ResNet-200 are unknown to the paper, which takes a small mean ratio of penalty to Rayleigh
quotient as a sign of eigenvectors. The components of MNIST are known, so that the sign can be checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.utilities import penalties, rewards
from eigengame.metrics import streak_of
from reproduction import mnist_images
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.experiments.scree_figure import draw_scree as draw
from reproduction.experiments.scree_text import claims, ratio_claims, reading, summary
from reproduction.products import (
    Products,
    Truth,
    angles,
    nearest_angles,
    products,
    residuals,
    truth_of,
)
from reproduction.protocol import GRID, Protocol, Runs, tune
from reproduction.trials import Family, eigengame, remembered, seeded_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "ratio_claims", "reading", "summary"]

TITLE = "Scree plot: Rayleigh quotients and utilities on MNIST"
PAPER = "fig:imagenet_scree"

ALGORITHMS: Mapping[str, tuple[Family, tuple[float, ...] | None]] = {
    "EigenGame": (eigengame, GRID),
    "remembered": (remembered, None),
}

PROTOCOL = Protocol(
    # Without centring, EigenGame is also run for `longer` passes at a `small` step size.
    full={
        "rows": 60_000,
        "k": 32,
        "batch": 1024,
        "passes": 10,
        "trials": 10,
        "longer": 30,
        "small": 1e-4,
    },
    quick={"rows": 2048, "k": 4, "batch": 256, "passes": 2, "trials": 2, "longer": 4},
)


def measure(run: Run) -> Results:
    """Measure reward and penalty of each player on all of the data, in both readings."""
    size = PROTOCOL.size(run.quick)
    images = mnist_images.load(run.data)[: size.rows]
    results: Results = {"size": vars(size), "readings": {}}
    for centring, read in mnist_images.readings(images).items():
        # All components, since a player may be near one that is not among the first k.
        values, truth = truth_of(read, read.shape[1])
        rows = jnp.asarray(read)
        players: Results = {}
        for name, (family, grid) in ALGORITHMS.items():
            run.progress(f"{centring}: {name}")
            tuned = tune(_runs(family, rows, truth, size, size.passes), _score, grid)
            players[name] = {"step": tuned.step, "tried": tuned.tried}
            players[name] |= _ended(tuned.shown["best"], values, len(rows))
        results["readings"][centring] = {
            "eigenvalues": rounded(values[: size.k] / len(read)),
            "players": players,
        }
        if centring == "uncentred":
            run.progress(f"{centring}, {size.longer} passes: EigenGame")
            longer = _runs(eigengame, rows, truth, size, size.longer)(size.small, 0)
            results["longer"] = {"step": size.small} | _ended(longer, values, len(rows))
    return results


def _runs(family: Family, rows: jax.Array, truth: Truth, size: Any, passes: int) -> Runs:
    """Return the function that runs all trials at a step size."""
    updates = passes * (len(rows) // size.batch)
    return seeded_runs(
        family,
        rows,
        truth,
        products,
        k=size.k,
        trials=size.trials,
        updates=updates,
        every=max(1, updates // 20),
        batch=size.batch,
    )


def _score(seen: Products) -> float:
    """Return the mean streak over the run."""
    return float(streak_of(angles(seen)).mean())


def _ended(course: Products, eigenvalues: np.ndarray, n: int) -> Results:
    """Return the final quotient, utility, ratio, angles and residual of each player of each trial, (trials, k)."""
    seen = Products(*(part[:, -1] for part in course))
    gram = jnp.asarray(seen.gram)
    earned = np.asarray(jax.vmap(rewards)(gram), np.float64) / n
    lost = np.asarray(jax.vmap(penalties)(gram), np.float64) / n
    off = angles(seen)
    return {
        "rayleigh": rounded(earned.mean(axis=0)),
        "utility": rounded((earned - lost).mean(axis=0)),
        "ratio": rounded(lost / earned, 3),
        "angle": rounded(off, 3),
        "nearest": rounded(nearest_angles(seen), 3),
        "residual": rounded(residuals(seen, eigenvalues), 3),
        "streak": rounded(streak_of(off).mean()),
    }
