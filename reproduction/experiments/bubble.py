"""Streaks with eigenvalues 10 to 19 equal: the other components are still determined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eigengame import testing
from eigengame.metrics import STREAK_ANGLE
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import final, finals, first_reach, listed
from reproduction.streaks import D, draw_streaks, measure_streaks, spectra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Synthetic data: repeated eigenvalues"
PAPER = "fig:bubble"

FIRST, LAST = 10, 19
"""The equal eigenvalues, counted from 1 as in the paper."""


def measure(run: Run) -> Results:
    """Measure the streak over the 40 other components, on both spectra."""
    outside = np.r_[0 : FIRST - 1, LAST:D]
    bubbles = {name: testing.bubble(values, FIRST, LAST) for name, values in spectra().items()}
    return measure_streaks(run, bubbles, angle=STREAK_ANGLE, counted=outside)


def claims(results: Results) -> list[Claim]:
    """Compare the caption with the results."""
    ends = {name: final(panel, "EigenGame") for name, panel in results["panels"].items()}
    return [
        Claim(
            "EigenGame does not require distinct eigenvalues: it finds the eigenvectors on either side of the "
            "repeated ones.",
            f"Final mean streak of EigenGame, of 40: {listed(ends)} (holds above {FIRST}, which is past the "
            "repeated eigenvalues).",
            holds_if(all(end > FIRST for end in ends.values())),
            "runs of 10000 iterations, step sizes of Alg. 2",
        ),
        Claim(
            "40 is optimal here, and EigenGame reaches it on the linear spectrum.",
            f"Final mean streak of EigenGame: {ends['linear']:.1f} (reached: at least 39.5).",
            holds_if(ends["linear"] >= 39.5),
            "runs of 10000 iterations, step sizes of Alg. 2",
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the streaks on both spectra, with a line at the repeated eigenvalues."""
    figure = draw_streaks(results)
    for axes in figure.axes:
        axes.axhline(FIRST - 1, color="#999999", linewidth=0.8)
        axes.annotate(
            "bubble",
            (1, FIRST - 1),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=7,
            color="#777777",
        )
    return figure


def summary(results: Results) -> str:
    """Describe when the streak passes the repeated eigenvalues, and list the final streaks."""
    passed = []
    for spectrum, panel in results["panels"].items():
        run = panel["runs"]["EigenGame"]
        at = first_reach(run["iterations"], run["curves"]["best"]["streak"]["mean"], FIRST)
        when = "never" if at is None else f"after {at:.0f} iterations"
        passed.append(f"{when} on the {spectrum} spectrum")
    ends = [f"{spectrum}: {listed(finals(panel))}" for spectrum, panel in results["panels"].items()]
    return (
        f"The mean streak of EigenGame passes the repeated eigenvalues {' and '.join(passed)}. Final mean streaks, "
        f"{'; '.join(ends)}."
    )


def reading(results: Results) -> str:
    """Describe which components are counted."""
    return (
        f"Eigenvalues {FIRST} to {LAST} are replaced by the {FIRST}th. Any basis of their eigenspace is correct, "
        f"so that the streak is counted over the other {results['components']} components. Length of runs and step "
        "sizes as in `synthetic`."
    )
