"""Streaks where eigenvalues 10 to 19 are equal: the components on either side are still determined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eigengame import testing
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._protocol import first_reach
from eigengame.experiments._streaks import D, draw_streaks, last, listed, measure_streaks, spectra
from eigengame.metrics import STREAK_ANGLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Synthetic data: repeated eigenvalues"
PAPER = "fig:bubble"

FIRST, LAST = 10, 19
"""The bubble, 1-based as in the paper."""


def measure(run: Run) -> Results:
    """Play everyone on both spectra with a bubble; the streak is over the 40 components outside it."""
    outside = np.r_[0 : FIRST - 1, LAST:D]
    bubbles = {name: testing.bubble(values, FIRST, LAST) for name, values in spectra().items()}
    return measure_streaks(run, bubbles, angle=STREAK_ANGLE, counted=outside)


def claims(results: Results) -> list[Claim]:
    """Hold the caption against the results."""
    ends = {name: last(panel, "EigenGame") for name, panel in results["panels"].items()}
    before = FIRST - 1
    return [
        Claim(
            "EigenGame does not require distinct eigenvalues: it finds the eigenvectors on either side of the "
            "repeated ones.",
            f"EigenGame's mean streak at the end, of 40: {listed(ends)}; above {before} it is past the bubble.",
            all(end > before + 1 for end in ends.values()),
        ),
        Claim(
            "40 is optimal here, and EigenGame reaches it on the linear spectrum.",
            f"EigenGame ends at {ends['linear']:.1f} (reached: from 39.5 on).",
            ends["linear"] >= 39.5,
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the streaks on both spectra, with the edge of the bubble."""
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


def words(results: Results) -> str:
    """Say what came out."""
    passed = []
    for spectrum, panel in results["panels"].items():
        run = panel["runs"]["EigenGame"]
        at = first_reach(run["iterations"], run["curves"]["best"]["streak"]["mean"], FIRST)
        passed.append(
            f"passes the bubble after {at:.0f} iterations on the {spectrum} spectrum"
            if at
            else f"does not pass the bubble on the {spectrum} spectrum"
        )
    ends = [
        f"{spectrum}: {listed({name: last(panel, name) for name in panel['runs']})}"
        for spectrum, panel in results["panels"].items()
    ]
    return (
        f"Eigenvalues {FIRST} to {LAST} are overwritten by the {FIRST}th. Within the bubble any basis is right, "
        f"so the streak is over the other 40. EigenGame {' and '.join(passed)}. Mean streaks at the end, "
        f"{'; '.join(ends)}."
    )
