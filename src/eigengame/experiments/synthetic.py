"""Streaks on M of 50 x 50 with a linear and an exponential spectrum: the paper's first figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._protocol import first_reach
from eigengame.experiments._streaks import (
    area,
    draw_streaks,
    last,
    listed,
    measure_streaks,
    spectra,
)
from eigengame.metrics import STREAK_ANGLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Synthetic data: all 50 components of a matrix"
PAPER = "fig:synth"

PAPERS = ("EigenGame", "EigenGame^R", "GHA", "Oja")
"""Those whom the paper's figure shows."""

ALIKE = 5.0
"""Asymptotes are similar where mean streaks end within a tenth of the 50."""


def measure(run: Run) -> Results:
    """Play everyone on both spectra, and keep the streak at pi/8."""
    return measure_streaks(run, spectra(), angle=STREAK_ANGLE)


def claims(results: Results) -> list[Claim]:
    """Hold the figure's caption and Sec. Experiments against the results."""
    areas = {
        name: {one: area(panel, one) for one in PAPERS} for name, panel in results["panels"].items()
    }
    ends = {
        name: {one: last(panel, one) for one in PAPERS} for name, panel in results["panels"].items()
    }
    similar = {one: ends["linear"][one] for one in PAPERS[:3]}
    times = {
        name: {one: panel["runs"][one]["runtime"] for one in PAPERS[:2]}
        for name, panel in results["panels"].items()
    }
    return [
        Claim(
            "Oja's algorithm performs best on the synthetic experiments.",
            "Mean streak at the end (by which this is judged), "
            + "; ".join(f"{name}: {listed(each)}" for name, each in ends.items())
            + "; over the whole run, "
            + "; ".join(f"{name}: {listed(each)}" for name, each in areas.items())
            + ".",
            all(max(each, key=each.__getitem__) == "Oja" for each in ends.values()),
        ),
        Claim(
            "Both EigenGame variants and GHA achieve similar asymptotes on the linear spectrum.",
            f"Mean streak at the end: {listed(similar)} (similar: within {ALIKE:g}).",
            max(similar.values()) - min(similar.values()) <= ALIKE,
        ),
        Claim(
            "EigenGame performs better than EigenGame^R and GHA on the exponential spectrum.",
            f"Mean streak over the run: {listed({one: areas['exponential'][one] for one in PAPERS[:3]})}; "
            f"at the end: {listed({one: ends['exponential'][one] for one in PAPERS[:3]})}.",
            all(
                each["exponential"]["EigenGame"] > each["exponential"][other]
                for each in (areas, ends)
                for other in PAPERS[1:3]
            ),
        ),
        Claim(
            "A run of EigenGame takes longer than one of EigenGame^R, although it needs fewer operations.",
            "; ".join(f"{name}: {listed(each, '.0f')} ms" for name, each in times.items()) + ".",
            all(each["EigenGame"] > each["EigenGame^R"] for each in times.values()),
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the streaks on both spectra."""
    return draw_streaks(results)


def words(results: Results) -> str:
    """Say what came out."""
    size, said = results["size"], []
    for spectrum, panel in results["panels"].items():
        steps = {
            name: run["step"] for name, run in panel["runs"].items() if run["step"] is not None
        }
        said.append(f"on the {spectrum} spectrum {listed(steps, 'g')}")
    x10 = {
        one: results["panels"]["exponential"]["runs"][one]["curves"]["x10"]["streak"]["mean"][-1]
        for one in PAPERS[:2]
    }
    rounds = []
    for spectrum, panel in results["panels"].items():
        run = panel["runs"]["best response"]
        mean = run["curves"]["best"]["streak"]["mean"]
        most = max(mean)
        reached = first_reach(run["iterations"], mean, most)
        rounds.append(f"{most:.1f} of 50 after {reached:.0f} rounds on the {spectrum} spectrum")
    return (
        f"M is diagonal and players start anywhere on the sphere: {size['trials']} trials of "
        f"{size['updates']} iterations, and {size['trials']} more held out to choose step sizes: "
        f"{'; '.join(said)}. The paper does not say how long its runs were: asymptotes here are what is "
        "reached at the end of these. Oja's listing has no factor 2, so the same number is half the step for it. "
        "What the projection costs shows at ten times the step on the exponential spectrum, where the streak "
        f"ends at {listed(x10)}: plain EigenGame bears a step that breaks its projected form. Beside "
        "the paper's four play mu (EigenGame Unloaded) and best response, "
        f"which has no step size to choose and reaches {' and '.join(rounds)}."
    )
