"""Streaks within pi/32, to check that pi/8 is not a loose tolerance."""

from __future__ import annotations

import math

from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import crossing, final, finals, listed
from reproduction.experiments.synthetic import IN_PAPER
from reproduction.streaks import draw_streaks as draw
from reproduction.streaks import length_of, measure_streaks, spectra

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "Synthetic data: a stricter tolerance"
PAPER = "fig:synth_extra"

SLIGHTLY = 2.0
"""Slightly more iterations: less than this factor."""
UNCHANGED = 1.1
"""No visible change: less than this factor."""
ACCURATE = 0.9
"""The solution is accurate if this share of the streak at pi/8 remains at pi/32."""


def measure(run: Run) -> Results:
    """Measure the streaks at pi/32 and at pi/8 of all algorithms on both spectra."""
    return measure_streaks(run, spectra(), angle=math.pi / 32)


def slowdowns(results: Results, spectrum: str) -> dict[str, float | None]:
    """Return iterations at pi/32 over iterations at pi/8, to half of the final streak at pi/8.

    None if the level is not reached.
    """
    panel, factors = results["panels"][spectrum], {}
    for name in IN_PAPER:
        curves, x = panel["runs"][name]["curves"]["best"], panel["runs"][name]["iterations"]
        level = curves["loose"]["mean"][-1] / 2
        loose, strict = (crossing(x, curves[kind]["mean"], level) for kind in ("loose", "streak"))
        factors[name] = strict / loose if loose and strict else None
    return factors


def claims(results: Results) -> list[Claim]:
    """Compare the caption and its paragraph with the results."""
    ends = {
        spectrum: {kind: final(panel, "EigenGame", kind) for kind in ("loose", "streak")}
        for spectrum, panel in results["panels"].items()
    }
    linear, exponential = (slowdowns(results, name) for name in ("linear", "exponential"))
    return [
        Claim(
            "EigenGame solves for the eigenvectors to a high degree of accuracy: pi/8 was no loose tolerance.",
            "Final mean streak of EigenGame at pi/8 and at pi/32: "
            + "; ".join(
                f"{spectrum} {end['loose']:.1f} and {end['streak']:.1f}"
                for spectrum, end in ends.items()
            )
            + f" (holds if at least {ACCURATE:.0%} remain on both spectra).",
            holds_if(all(end["streak"] >= ACCURATE * end["loose"] for end in ends.values())),
            f"by the final streak, {length_of(results)}",
        ),
        Claim(
            "With the lower tolerance all algorithms take slightly more iterations on the linear spectrum.",
            "Iterations at pi/32 over iterations at pi/8, to half of the final streak at pi/8: "
            f"{_listed(linear)} (holds if all are from 1 to {SLIGHTLY:g}, and one is above 1).",
            holds_if(
                all(one is not None and 1 <= one < SLIGHTLY for one in linear.values())
                and any(one is not None and one > 1 for one in linear.values())
            ),
            "iterations to half of the final streak",
        ),
        Claim(
            "On the exponential spectrum it is difficult to see any change.",
            f"The same ratio: {_listed(exponential)} (no change: below {UNCHANGED:g}).",
            holds_if(all(one is not None and one < UNCHANGED for one in exponential.values())),
            "iterations to half of the final streak",
        ),
    ]


def _listed(factors: dict[str, float | None]) -> str:
    """Format the factors as a list."""
    return ", ".join(
        f"{name} {'not reached' if value is None else f'{value:.2f}'}"
        for name, value in factors.items()
    )


def summary(results: Results) -> str:
    """List the final streaks."""
    ends = [f"{spectrum}: {listed(finals(panel))}" for spectrum, panel in results["panels"].items()]
    return f"Final mean streaks at pi/32, {'; '.join(ends)}."


def reading(results: Results) -> str:
    """Describe how step sizes and slowdowns are defined."""
    x = results["panels"]["linear"]["runs"]["EigenGame"]["iterations"]
    return (
        "The runs of `synthetic` (made once if both are run by one command), with step sizes chosen again by the "
        "streak at pi/32. The paper compares curves by eye; here the number of iterations to half of the final "
        "streak at pi/8 is compared. It is interpolated between measurements, which are "
        f"{x[-1] / x[-2] - 1:.1%} of the iterations apart."
    )
