"""Streaks within pi/32, to check that pi/8 is not a loose tolerance."""

from __future__ import annotations

import math

from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import crossing, final, finals, listed
from reproduction.experiments.synthetic import IN_PAPER, MEASURES
from reproduction.streaks import draw_streaks as draw
from reproduction.streaks import length_of, measure_streaks, spectra

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "Synthetic data: a stricter tolerance"
PAPER = "fig:synth_extra"

SLIGHTLY = 2.0
"""Slightly more iterations: less than this factor."""
UNCHANGED = 1.1
"""No visible change in iterations: less than this factor."""
UNSEEN = 1.0
"""No visible change of a streak: at most one component, 2 % of the axis."""
SHARES = (0.25, 0.5, 0.75)
"""Shares of the final streak at which EigenGame's slowdowns are reported."""
NO_CHANGE = "On the exponential spectrum it is difficult to see any change."
ACCURATE = 0.9
"""The solution is accurate if this share of the streak at pi/8 remains at pi/32."""


def measure(run: Run) -> Results:
    """Measure the streaks at pi/32 and at pi/8 of all algorithms on both spectra."""
    return measure_streaks(run, spectra(), angle=math.pi / 32)


def slowdowns(results: Results, spectrum: str, share: float = 0.5) -> dict[str, float | None]:
    """Return iterations at pi/32 over iterations at pi/8, to a share of the final streak at pi/8.

    None if the level is not reached.
    """
    panel, factors = results["panels"][spectrum], {}
    for name in IN_PAPER:
        curves, x = panel["runs"][name]["curves"]["best"], panel["runs"][name]["iterations"]
        level = share * curves["loose"]["mean"][-1]
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
            NO_CHANGE,
            f"The same ratio: {_listed(exponential)} (no change: below {UNCHANGED:g}).",
            holds_if(all(one is not None and one < UNCHANGED for one in exponential.values())),
            "iterations to half of the final streak",
        ),
        *(_unseen(results, said) for said in MEASURES),
    ]


def losses(results: Results, spectrum: str, said: str) -> dict[str, float]:
    """Return a measure of the streak at pi/8 less that at pi/32, of each algorithm of the paper."""
    panel, value = results["panels"][spectrum], MEASURES[said]
    return {name: value(panel, name, "loose") - value(panel, name, "streak") for name in IN_PAPER}


def _unseen(results: Results, said: str) -> Claim:
    """Compare the streaks at both angles after equal numbers of iterations."""
    lost = losses(results, "exponential", said)
    return Claim(
        NO_CHANGE,
        f"{said.capitalize()} at pi/8 less that at pi/32: {listed(lost, '.2f')} (no change: at most {UNSEEN:g} of "
        f"{results['components']}).",
        holds_if(all(one <= UNSEEN for one in lost.values())),
        f"by the {said}, {length_of(results)}",
    )


def _listed(factors: dict[str, float | None]) -> str:
    """Format the factors as a list."""
    return ", ".join(f"{name} {_factor(value)}" for name, value in factors.items())


def _factor(value: float | None) -> str:
    """Format a factor."""
    return "not reached" if value is None else f"{value:.2f}"


def summary(results: Results) -> str:
    """List the final streaks, and describe for which algorithms the smaller angle makes a difference."""
    ends = [f"{spectrum}: {listed(finals(panel))}" for spectrum, panel in results["panels"].items()]
    ratios = "; ".join(
        f"{spectrum}: {', '.join(_factor(slowdowns(results, spectrum, share)['EigenGame']) for share in SHARES)}"
        for spectrum in results["panels"]
    )
    return (
        f"Final mean streaks at pi/32, {'; '.join(ends)}. EigenGame's iterations at pi/32 over those at pi/8, to a "
        f"quarter, a half and three quarters of its final streak, {ratios}. {_unchanged(results)}"
    )


def _unchanged(results: Results) -> str:
    """Name the algorithms without a change on the exponential spectrum by any of the three measures."""
    factors = slowdowns(results, "exponential")
    lost = [losses(results, "exponential", said) for said in MEASURES]
    same = [
        name
        for name, factor in factors.items()
        if factor is not None and factor < UNCHANGED and all(one[name] <= UNSEEN for one in lost)
    ]
    if not same:
        return "On the exponential spectrum every algorithm changes by at least one of the three measures."
    others = [name for name in factors if name not in same]
    said = f"On the exponential spectrum {' and '.join(same)} change by none of the three measures"
    return f"{said}, {' and '.join(others)} by at least one." if others else f"{said}."


def reading(results: Results) -> str:
    """Describe how step sizes and slowdowns are defined."""
    x = results["panels"]["linear"]["runs"]["EigenGame"]["iterations"]
    return (
        "The runs of `synthetic`, with step sizes chosen again by the streak at pi/32. If both are run by one "
        "command the runs are made once, and the time stated below does not include them. The paper compares "
        "curves by eye; here the number of iterations to half of the final streak at pi/8 is compared, and the "
        "streaks after equal numbers of iterations. A number of iterations is interpolated between measurements, "
        f"which are {x[-1] / x[-2] - 1:.1%} of the iterations apart."
    )
