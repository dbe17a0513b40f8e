"""Streaks on 50 x 50 matrices with a linear and an exponential spectrum: the paper's first figure."""

from __future__ import annotations

from eigengame.metrics import STREAK_ANGLE
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import chosen_steps, final, first_reach, listed, run_mean
from reproduction.streaks import draw_streaks as draw
from reproduction.streaks import measure_streaks, spectra

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "Synthetic data: all 50 components of a matrix"
PAPER = "fig:synth"

IN_PAPER = ("EigenGame", "EigenGame^R", "GHA", "Oja")
"""Algorithms in the paper's figure."""

SIMILAR = 5.0
"""Asymptotes are similar if the final mean streaks differ by at most a tenth of the 50."""


def measure(run: Run) -> Results:
    """Measure the streak at pi/8 of all algorithms on both spectra."""
    return measure_streaks(run, spectra(), angle=STREAK_ANGLE)


def claims(results: Results) -> list[Claim]:
    """Compare the caption and Sec. Experiments with the results."""
    found = results["panels"]
    means, ends = (
        {name: {one: value(panel, one) for one in IN_PAPER} for name, panel in found.items()}
        for value in (run_mean, final)
    )
    similar = {one: ends["linear"][one] for one in IN_PAPER[:3]}
    times = {
        name: {one: panel["runs"][one]["runtime"] for one in IN_PAPER[:2]}
        for name, panel in found.items()
    }
    return [
        Claim(
            "Oja's algorithm performs best on the synthetic experiments.",
            f"Final mean streak (the criterion), {_by_spectrum(ends)}; mean streak over the run, "
            f"{_by_spectrum(means)}.",
            holds_if(all(max(each, key=each.__getitem__) == "Oja" for each in ends.values())),
            "runs of 10000 iterations, step sizes of Alg. 2",
        ),
        Claim(
            "Both EigenGame variants and GHA achieve similar asymptotes on the linear spectrum.",
            f"Final mean streak: {listed(similar)} (similar: within {SIMILAR:g}).",
            holds_if(max(similar.values()) - min(similar.values()) <= SIMILAR),
            "runs of 10000 iterations, step sizes of Alg. 2",
        ),
        Claim(
            "EigenGame performs better than EigenGame^R and GHA on the exponential spectrum.",
            f"Mean streak over the run: {listed({one: means['exponential'][one] for one in IN_PAPER[:3]})}; "
            f"final: {listed({one: ends['exponential'][one] for one in IN_PAPER[:3]})} (holds if both are larger).",
            holds_if(
                all(
                    each["exponential"]["EigenGame"] > each["exponential"][other]
                    for each in (means, ends)
                    for other in IN_PAPER[1:3]
                )
            ),
            "runs of 10000 iterations, step sizes of Alg. 2",
        ),
        Claim(
            "A run of EigenGame takes longer than one of EigenGame^R, although it needs fewer operations.",
            f"Runtime in ms, {_by_spectrum(times, '.0f')} (holds if longer on both spectra).",
            holds_if(all(each["EigenGame"] > each["EigenGame^R"] for each in times.values())),
            "runs of 10000 iterations, step sizes of Alg. 2",
        ),
    ]


def _by_spectrum(values: dict[str, dict[str, float]], form: str = ".1f") -> str:
    return "; ".join(f"{name}: {listed(each, form)}" for name, each in values.items())


def summary(results: Results) -> str:
    """Describe step sizes, the effect of ten times the step size, and best response."""
    found = results["panels"]
    steps = {spectrum: chosen_steps(panel) for spectrum, panel in found.items()}
    rounds = []
    for spectrum, panel in found.items():
        run = panel["runs"]["best response"]
        mean = run["curves"]["best"]["streak"]["mean"]
        reached = first_reach(run["iterations"], mean, max(mean))
        rounds.append(f"{max(mean):.1f} of 50 after {reached:.0f} rounds ({spectrum} spectrum)")
    return (
        f"Step sizes chosen on held-out runs, {_by_spectrum(steps, 'g')}. {_large_steps(found['exponential'])} "
        "In addition to the paper's four algorithms, the figure has mu (EigenGame Unloaded) and best response. "
        f"Best response has no step size; its mean streak reaches a maximum of {' and '.join(rounds)}."
    )


def _large_steps(panel: Results) -> str:
    """Compare EigenGame with and without the projection at ten times the best step size."""
    plain, projected = (final(panel, name, step="x10") for name in IN_PAPER[:2])
    said = (
        "At ten times the chosen step size on the exponential spectrum, the final mean streak is "
        f"{plain:.1f} for EigenGame and {projected:.1f} for EigenGame^R: "
    )
    if abs(plain - projected) <= 1:
        return said + "the projection makes no difference of more than one component there."
    return (
        said
        + f"EigenGame {'with' if projected > plain else 'without'} the projection tolerates it better."
    )


def reading(results: Results) -> str:
    """Describe the length of the runs and the factor 2."""
    size = results["size"]
    return (
        f"M is diagonal and initial players are uniform on the sphere; {size['trials']} trials of "
        f"{size['updates']} iterations, and {size['trials']} held-out trials to choose step sizes. The paper does "
        f"not give the length of its runs: asymptotes are the values after {size['updates']} iterations. Oja's "
        "listing has no factor 2, so that the same step size is half as large for it."
    )
