"""Streaks on 50 x 50 matrices with a linear and an exponential spectrum: the paper's first figure."""

from __future__ import annotations

from collections.abc import Mapping

from eigengame.metrics import STREAK_ANGLE
from reproduction.base import Claim, Results, Run, Verdict, holds_if
from reproduction.curves import FLAT, chosen_steps, final, first_reach, listed, run_mean
from reproduction.streaks import asymptote, length_of, longer_runs, measure_streaks, spectra
from reproduction.streaks import draw_streaks as draw

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "Synthetic data: all 50 components of a matrix"
PAPER = "fig:synth"

IN_PAPER = ("EigenGame", "EigenGame^R", "GHA", "Oja")
"""Algorithms in the paper's figure."""

SIMILAR = 5.0
"""Asymptotes are similar if the final mean streaks differ by at most a tenth of the 50."""

MEASURES = {"final mean streak": final, "mean streak over the run": run_mean}
"""What "performs better" can mean. The paper compares curves by eye."""


def measure(run: Run) -> Results:
    """Measure the streak at pi/8 of all algorithms on both spectra."""
    return measure_streaks(run, spectra(), angle=STREAK_ANGLE)


def claims(results: Results) -> list[Claim]:
    """Compare the caption and Sec. Experiments with the results."""
    return [
        *(_oja_is_best(results, said) for said in MEASURES),
        _similar_asymptotes(results),
        *(
            _eigengame_is_better(results, other, said)
            for other in ("EigenGame^R", "GHA")
            for said in MEASURES
        ),
        _runtimes(results),
    ]


def _oja_is_best(results: Results, said: str) -> Claim:
    """Compare Oja with the three others. A tie everywhere is not best."""
    values = _values(results, said)
    leads = [
        each["Oja"] - max(value for name, value in each.items() if name != "Oja")
        for each in values.values()
    ]
    return Claim(
        "Oja's algorithm performs best on the synthetic experiments.",
        f"{said.capitalize()}, {_by_spectrum(values, '.2f')} (holds if no other is larger on either spectrum, and "
        "all are smaller on one).",
        holds_if(min(leads) >= 0 and max(leads) > 0),
        f"by the {said}, {length_of(results)}",
    )


def _similar_asymptotes(results: Results) -> Claim:
    """Compare final streaks on the linear spectrum if all curves are flat by then."""
    ends = {name: asymptote(results, "linear", name) for name in IN_PAPER[:3]}
    values = [one.end for one in ends.values()]
    met = holds_if(max(values) - min(values) <= SIMILAR)
    return Claim(
        "Both EigenGame variants and GHA achieve similar asymptotes on the linear spectrum.",
        f"Final mean streak: {'; '.join(f'{name} {one}' for name, one in ends.items())} (similar: within "
        f"{SIMILAR:g}; judged if all are at the maximum or flat: a change of at most {FLAT:g} over the second half "
        "of the run).",
        met if all(one.settled for one in ends.values()) else Verdict.NOT_COMPARABLE,
        length_of(results),
    )


def _eigengame_is_better(results: Results, other: str, said: str) -> Claim:
    """Compare EigenGame with another algorithm on the exponential spectrum."""
    panel = results["panels"]["exponential"]
    values = {name: MEASURES[said](panel, name) for name in ("EigenGame", other)}
    ends = "; ".join(f"{name} {asymptote(results, 'exponential', name)}" for name in values)
    return Claim(
        f"EigenGame performs better than {other} on the exponential spectrum.",
        f"{said.capitalize()}: {listed(values, '.2f')} (holds if EigenGame's is larger). The longest runs end at: "
        f"{ends}.",
        holds_if(values["EigenGame"] > values[other]),
        f"by the {said}, {length_of(results)}",
    )


def _runtimes(results: Results) -> Claim:
    """Report runtimes. The paper itself attributes the difference to details of its arithmetic."""
    times = {
        name: {one: panel["runs"][one]["runtime"] for one in IN_PAPER[:2]}
        for name, panel in results["panels"].items()
    }
    return Claim(
        "A run of EigenGame takes longer than one of EigenGame^R, although it needs fewer operations.",
        f"Runtime in ms, {_by_spectrum(times, '.0f')}. The comparison depends on machine and implementation: no "
        "criterion.",
        Verdict.NOT_COMPARABLE,
        "another machine and another implementation",
    )


def _values(results: Results, said: str) -> dict[str, dict[str, float]]:
    """Return a measure of each algorithm of the paper, by spectrum."""
    return {
        spectrum: {name: MEASURES[said](panel, name) for name in IN_PAPER}
        for spectrum, panel in results["panels"].items()
    }


def _by_spectrum(values: Mapping[str, Mapping[str, float]], form: str = ".1f") -> str:
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
        f"Step sizes chosen on held-out runs, {_by_spectrum(steps, 'g')}. {longer_runs(results)} "
        f"{_large_steps(found['exponential'])} "
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
        f"not give the length of its runs. Algorithms whose streak still rises at the end are run again for "
        f"{size['longer']} iterations at the chosen step size, which only claims about asymptotes use; these are "
        "judged only if the curves are flat or at their maximum. Measurements are at iterations in "
        "equal ratios; a mean over the run is over iterations, so that each measurement counts for the iterations "
        "since the one before. Oja's listing has no factor 2, so that the same step size is half as large for it."
    )
