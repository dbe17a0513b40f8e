"""Streaks with eigenvalues 10 to 19 equal: the other components are still determined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eigengame import testing
from eigengame.metrics import STREAK_ANGLE
from reproduction.base import Claim, Results, Run, Verdict, holds_if
from reproduction.curves import FLAT, final, finals, first_reach, listed
from reproduction.figures import mark_level
from reproduction.streaks import (
    D,
    asymptote,
    draw_streaks,
    length_of,
    longer_runs,
    measure_streaks,
    spectra,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Synthetic data: repeated eigenvalues"
PAPER = "fig:bubble"

FIRST, LAST = 10, 19
"""The equal eigenvalues, counted from 1 as in the paper."""

DIP = 2.0
"""A mean streak falls visibly if it loses more than this."""

REACHED = 0.5
"""A mean streak is at its maximum if it is at most this much below."""


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
            f"Final mean streak of EigenGame, of {results['components']}: {listed(ends)} (holds above {FIRST}, "
            "which is past the repeated eigenvalues, on both spectra).",
            holds_if(all(end > FIRST for end in ends.values())),
            length_of(results),
        ),
        *(_optimum(results, spectrum) for spectrum in results["panels"]),
    ]


def _optimum(results: Results, spectrum: str) -> Claim:
    """Judge whether the streak approaches its maximum; below it, a curve that still rises decides nothing."""
    optimum, found = results["components"], asymptote(results, spectrum, "EigenGame")
    reached = found.end >= optimum - REACHED
    undecided = found.trend == "still rising" and not reached
    return Claim(
        f"The streak of EigenGame approaches {optimum}, which is optimal here.",
        f"Final mean streak of EigenGame: {found} (reached: at least {optimum - REACHED:g}; does not hold if the "
        f"curve ends below that and does not rise by more than {FLAT:g} over the second half of the run).",
        Verdict.NOT_COMPARABLE if undecided else holds_if(reached),
        f"{spectrum} spectrum, runs of {found.iterations} iterations, step sizes of Alg. 2",
    )


def draw(results: Results) -> Figure:
    """Draw the streaks on both spectra, with a line at the repeated eigenvalues."""
    figure = draw_streaks(results)
    columns = len(results["panels"])
    for place, axes in enumerate(figure.axes):
        last = place % columns == columns - 1
        mark_level(axes, FIRST - 1, "repeated\neigenvalues" if last else "")
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
        f"{'; '.join(ends)}. {longer_runs(results)}{_dips(results)}"
    )


def _dips(results: Results) -> str:
    """Name the curves at the best step sizes that fall by more than `DIP` during the run, with the numbers."""
    found = []
    for spectrum, panel in results["panels"].items():
        for name, run in panel["runs"].items():
            mean = np.asarray(run["curves"]["best"]["streak"]["mean"])
            drops = np.maximum.accumulate(mean) - mean
            lowest = int(drops.argmax())
            if drops[lowest] > DIP:
                found.append(
                    f"{name} from {mean[:lowest].max():.1f} to {mean[lowest]:.1f} after "
                    f"{run['iterations'][lowest]} iterations, and to {mean[-1]:.1f} at the end "
                    f"({spectrum} spectrum)"
                )
    return f" Curves that fall during the run: {'; '.join(found)}." if found else ""


def reading(results: Results) -> str:
    """Describe which components are counted."""
    return (
        f"Eigenvalues {FIRST} to {LAST} are replaced by the {FIRST}th. Any basis of their eigenspace is correct, "
        f"so that the streak is counted over the other {results['components']} components. Length of runs and step "
        "sizes as in `synthetic`."
    )
