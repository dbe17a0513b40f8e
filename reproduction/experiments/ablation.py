"""The game without its order, without its normaliser, and without both, on the paper's two spectra."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.diagonal_rows import DiagonalRows
from reproduction.experiments.ablation_figure import draw_ablation as draw
from reproduction.experiments.ablation_games import (
    COUNTS,
    FAMILIES,
    GAMES,
    VARIANTS,
    Closeness,
    closeness,
)
from reproduction.experiments.ablation_text import claims, reading, summary
from reproduction.protocol import GRID, Protocol
from reproduction.streaks import D, spectra
from reproduction.trials import log_points, play_trials, starts

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "The game without its order and its normaliser"
PAPER = "Sec. Message Passing on a DAG (footnote), appendix Design Decisions"

QUICK_VARIANTS = ("EigenGame",)
"""Variants of a quick run: each game of each variant is compiled."""

SMALLER = (*GRID, 1e-7)
"""Step sizes without the normaliser, where the gradient of a penalty is of the order of M squared, here 1e6."""

PROTOCOL = Protocol(
    # Without order and normaliser, the number of components grows most slowly: `longer` in place of `updates`.
    full={"updates": 80_000, "longer": 160_000, "points": 60, "trials": 5},
    quick={"updates": 40, "longer": 80, "points": 4, "trials": 2},
)


def measure(run: Run) -> Results:
    """Run the four games with and without the projection at every step size, on both spectra.

    No step size is chosen beforehand, so that there are no held-out runs: all are reported.
    """
    size = PROTOCOL.size(run.quick)
    results: Results = {"components": D, "size": vars(size), "panels": {}}
    truth = jnp.eye(D, dtype=jnp.float32)
    players = starts(0, size.trials, D, D)
    for spectrum, values in spectra().items():
        rows = DiagonalRows.of(values)
        panel: Results = {variant: {} for variant in (QUICK_VARIANTS if run.quick else VARIANTS)}
        for (variant, game), family in FAMILIES.items():
            if variant not in panel:
                continue
            run.progress(f"{spectrum} spectrum: {variant}, {game}")
            points = log_points(
                size.longer if game == "without both" else size.updates, size.points
            )
            panel[variant][game] = {
                "iterations": points,
                "steps": {
                    f"{step:g}": _record(
                        play_trials(family, step, players, rows, truth, closeness, points=points)
                    )
                    for step in (GRID if GAMES[game].normaliser else SMALLER)
                },
            }
        results["panels"][spectrum] = panel
    return results


def _record(seen: Closeness) -> Results:
    """Return the counts at each point (mean and extremes over trials) and the final crowd of players."""
    kept: Results = {"crowd": rounded(np.mean(seen.crowd[:, -1]))}
    for kind, count in COUNTS.items():
        counted = count(seen)
        kept[kind] = {
            "mean": rounded(counted.mean(axis=0)),
            "low": counted.min(axis=0).tolist(),
            "high": counted.max(axis=0).tolist(),
        }
    return kept
