"""EigenGame and Oja in `mnist` for choices that the paper does not state: other step sizes, a longer run."""

from __future__ import annotations

import numpy as np

from reproduction.base import Results
from reproduction.experiments.mnist_growth import BEYOND, in_errors

COMPETITIVE = 1.0
"""Competitive: a mean streak that is shorter by at most this."""


def other_choices(finer: Results) -> dict[str, tuple[Results, Results]]:
    """Return the final streaks of EigenGame and Oja, with errors, for other step sizes and for a longer run.

    Step sizes are chosen on held-out runs, by the mean over the run or by its end.
    """

    def ends(kind: str, rule: str) -> tuple[Results, Results]:
        ours, oja = (finer[kind][name] for name in ("EigenGame", "Oja"))
        return (
            ours[best_step(ours, rule)]["shown"]["streak"],
            oja[best_step(oja, rule)]["shown"]["streak"],
        )

    return {
        "chosen by the mean over the run": ends("steps", "area"),
        "chosen by the end of the run": ends("steps", "end"),
        f"after {finer['passes']} passes, chosen by the end": ends("longer", "end"),
    }


def best_step(steps: Results, rule: str) -> str:
    """Return the step size with the largest held-out streak, over the run ("area") or at its end ("end")."""

    def score(step: str) -> float:
        seen = steps[step]["held out"]
        return seen["area"] if rule == "area" else seen["streak"]["mean"]

    return max(steps, key=score)


def is_competitive(pair: dict[str, float]) -> bool:
    """Return whether EigenGame's mean streak is at most `COMPETITIVE` shorter than Oja's."""
    return pair["EigenGame"] >= pair["Oja"] - COMPETITIVE


def is_excluded(ours: Results, oja: Results) -> bool:
    """Return whether EigenGame's streak is shorter than Oja's by more than `COMPETITIVE`, beyond errors."""
    short = oja["mean"] - ours["mean"] - COMPETITIVE
    return in_errors(short, float(np.hypot(ours["error"], oja["error"]))) >= BEYOND


def _outcome(ours: Results, oja: Results) -> str:
    """Return whether EigenGame is competitive, or that errors leave it open."""
    if is_competitive({"EigenGame": ours["mean"], "Oja": oja["mean"]}):
        return "competitive"
    return "not competitive" if is_excluded(ours, oja) else "open within errors"


def describe_choices(finer: Results, others: dict[str, tuple[Results, Results]]) -> str:
    """Return the outcome of other choices in a sentence."""
    steps = list(finer["steps"]["EigenGame"])
    parts = [
        f"{choice}: EigenGame {ours['mean']:.1f} (± {ours['error']:.1f}), Oja {oja['mean']:.1f} "
        f"(± {oja['error']:.1f}), {_outcome(ours, oja)}"
        for choice, (ours, oja) in others.items()
    ]
    return (
        f"With {len(steps)} step sizes from {steps[0]} to {steps[-1]}, final mean streaks are: "
        f"{'; '.join(parts)}."
    )
