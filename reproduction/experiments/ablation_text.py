"""Claims and texts of `ablation`, computed from the measured counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reproduction.base import Claim, Results, Verdict, holds_if
from reproduction.curves import mean_over_run, trend

FOOTNOTE = {"without order": 1, "without both": 5}
"""Number of components learnt according to the paper."""

SAID = {
    "streak": "components counted by the longest streak",
    "found": "components counted if any player is within pi/8",
}
"""The two ways to count, in words."""


class Course(NamedTuple):
    """Counts of one game over time, for one spectrum, variant and step size.

    Attributes
    ----------
    where : str
        Spectrum and variant.
    variant, step : str
    iterations : list of int
    mean, high : list of float
        Mean and maximum over trials at each iteration.
    unfinished : bool
        Whether the mean of either count still rises at the end: then the players still move to other components,
        and the other count may change as well.
    """

    where: str
    variant: str
    step: str
    iterations: list[int]
    mean: list[float]
    high: list[int]
    unfinished: bool

    @property
    def end(self) -> float:
        """The final mean count."""
        return self.mean[-1]

    @property
    def area(self) -> float:
        """The mean count over the run."""
        return float(mean_over_run(self.mean, self.iterations))

    @property
    def trend(self) -> str:
        """Whether the mean count is flat, still rising or falling at the end."""
        return trend(self.iterations, self.mean)


def courses(results: Results, game: str, kind: str) -> Iterator[Course]:
    """Yield the counts of a game for every spectrum, variant and step size."""
    for spectrum, panel in results["panels"].items():
        for variant, games in panel.items():
            x = games[game]["iterations"]
            for step, kept in games[game]["steps"].items():
                yield Course(
                    f"{spectrum}, {variant}",
                    variant,
                    step,
                    x,
                    kept[kind]["mean"],
                    kept[kind]["high"],
                    any(trend(x, kept[one]["mean"]) == "still rising" for one in SAID),
                )


def best(results: Results, game: str, kind: str) -> dict[str, Course]:
    """Return the course of the step size with the largest mean over the run, by spectrum and variant."""
    chosen: dict[str, Course] = {}
    for one in courses(results, game, kind):
        if one.where not in chosen or one.area > chosen[one.where].area:
            chosen[one.where] = one
    return chosen


def claims(results: Results) -> list[Claim]:
    """Compare the footnote and the paragraph on the normaliser with the results."""
    return [
        *(_at_most_one(results, kind) for kind in SAID),
        *(_five(results, kind) for kind in SAID),
        *(
            _better(results, "The order improves convergence.", "without order", kind)
            for kind in SAID
        ),
        _better(
            results,
            "The normaliser improves convergence.",
            "without normaliser",
            "streak",
        ),
    ]


def _at_most_one(results: Results, kind: str) -> Claim:
    """Judge the footnote's 1. Its "max" is read as the most over step sizes, of means over trials."""
    wanted = FOOTNOTE["without order"]
    seen = list(courses(results, "without order", kind))
    ends: dict[str, float] = {}
    for one in seen:
        ends[one.variant] = max(one.end, ends.get(one.variant, 0.0))
    if max(ends.values()) <= wanted:
        verdict = Verdict.NOT_COMPARABLE if _unfinished(seen) else Verdict.HOLDS
    else:
        exceeded = all(end >= wanted + 0.5 for end in ends.values())
        verdict = Verdict.DOES_NOT_HOLD if exceeded else Verdict.NOT_COMPARABLE
    said = ", ".join(f"{variant} {end:.1f}" for variant, end in ends.items())
    return Claim(
        "Without its order the game learns at most 1 component.",
        f"Largest final mean over step sizes and spectra: {said}. Largest final count of a single trial: "
        f"{max(one.high[-1] for one in seen)}. {_still(seen)} (holds if no final mean is above {wanted} and no "
        f"count still rises; does not hold if every variant has a final mean of {wanted + 0.5:g} or more at some "
        "step size; otherwise it depends on choices that the paper does not state).",
        verdict,
        f"{SAID[kind]}, means over trials, runs of {results['size']['updates']} iterations, all step sizes, with "
        "and without projection",
    )


def _five(results: Results, kind: str) -> Claim:
    """Judge the footnote's 5, which depends on step size, length, projection and spectrum."""
    wanted = FOOTNOTE["without both"]
    seen = list(courses(results, "without both", kind))
    chosen = best(results, "without both", kind)
    agreeing = [
        where for where, one in chosen.items() if round(one.end) == wanted and one.trend == "flat"
    ]
    reached = _most(seen) >= wanted
    if len(agreeing) == len(chosen):
        verdict = Verdict.HOLDS
    elif agreeing or reached or _unfinished(seen):
        verdict = Verdict.NOT_COMPARABLE
    else:
        verdict = Verdict.DOES_NOT_HOLD
    said = "; ".join(
        f"{where}: {one.end:.1f}, {one.trend} (step size {one.step})"
        for where, one in chosen.items()
    )
    return Claim(
        "Without order and normaliser it learns 5.",
        f"Final mean at the best step sizes, {said}. Largest count of any trial, step size and time: "
        f"{_most(seen)}. {_still(seen)} (holds if all end at {wanted} and no longer rise; does not hold if no "
        f"trial reaches {wanted} and no count still rises; otherwise it depends on choices that the paper does not "
        "state).",
        verdict,
        f"{SAID[kind]}, runs of {results['size']['longer']} iterations; step size, projection and length are not "
        "stated",
    )


def _better(results: Results, claim: str, game: str, kind: str) -> Claim:
    """Compare the mean count over the run with that of a reduced game, for every variant and spectrum."""
    full, less = (best(results, one, kind) for one in ("the game", game))
    said = "; ".join(
        f"{where}: {full[where].area:.1f} and {less[where].area:.1f} (final {full[where].end:.1f} and "
        f"{less[where].end:.1f})"
        for where in full
    )
    return Claim(
        claim,
        f"Mean count over the run with it and without, each at its best step size, {said} (holds if the mean is "
        "larger everywhere).",
        holds_if(all(full[where].area > less[where].area for where in full)),
        f"{SAID[kind]}, runs of {results['size']['updates']} iterations, best of all step sizes",
    )


def _most(seen: list[Course]) -> int:
    """Return the largest count of any trial at any time."""
    return max(max(one.high) for one in seen)


def _unfinished(seen: list[Course]) -> int:
    """Return in how many runs a mean count still rises at the end."""
    return sum(one.unfinished for one in seen)


def _still(seen: list[Course]) -> str:
    """Say in how many runs a mean count still rises at the end."""
    return (
        f"In {_unfinished(seen)} of {len(seen)} combinations of spectrum, variant and step size, a mean count "
        "still rises over the second half of the run"
    )


def summary(results: Results) -> str:
    """Describe how the counts of the footnote compare, and the course of the game without both."""
    return (
        "The figure shows the components within pi/8 of any player; for each game, the step size with the largest "
        "mean over the run. Bands are the range over trials, and labels at the right margin give the numbers of "
        f"the footnote. {_without_order(results)} {_without_both(results)}"
    )


def _without_order(results: Results) -> str:
    """Describe the counts without order, and how many players share the first component."""
    wanted = FOOTNOTE["without order"]
    streak, found = (_most(list(courses(results, "without order", kind))) for kind in SAID)
    said = (
        f"Without order the longest streak of any trial is {streak}, {_against(streak, wanted)} the footnote's "
        f"{wanted}, and at most {found} {'component is' if found == 1 else 'components are'} found by any player."
    )
    shared = []
    for spectrum, panel in results["panels"].items():
        step = best(results, "without order", "found")[f"{spectrum}, EigenGame"].step
        crowd = panel["EigenGame"]["without order"]["steps"][step]["crowd"]
        if crowd >= 2:
            shared.append(
                f"{crowd:.0f} of {results['components']} players ({spectrum} spectrum, step size {step})"
            )
    if not shared:
        return (
            f"{said} At the best step size of EigenGame no two players share the first component."
        )
    return (
        f"{said} At the best step size of EigenGame, {' and '.join(shared)} end within pi/8 of the first "
        "component: they crowd there, rather than one of them learning it."
    )


def _without_both(results: Results) -> str:
    """Describe the number of components without order and normaliser over time, at each step size."""
    wanted = FOOTNOTE["without both"]
    streak, found = (_most(list(courses(results, "without both", kind))) for kind in SAID)
    said = []
    for where, one in best(results, "without both", "found").items():
        times = [one.iterations[-1] // 8, one.iterations[-1] // 2, one.iterations[-1]]
        counts = np.interp(times, one.iterations, one.mean)
        said.append(
            f"{where} (step size {one.step}): {', '.join(f'{count:.1f}' for count in counts)}, {one.trend}"
        )
    return (
        f"Without order and normaliser the longest streak is {streak}, {_against(streak, wanted)} the footnote's "
        f"{wanted}, and up to {found} components are found by any player. Mean number found after an eighth, a "
        f"half and all of {results['size']['longer']} iterations: {'; '.join(said)}."
    )


def _against(value: float, wanted: float) -> str:
    return "equal to" if value == wanted else "below" if value < wanted else "above"


def reading(results: Results) -> str:
    """Describe what the footnote leaves open."""
    size = results["size"]
    return (
        f"All {results['components']} components, {size['trials']} trials of {size['updates']} iterations, and of "
        f"{size['longer']} without order and normaliser, at step sizes from 1e-3 to 1e-6, and down to 1e-7 without "
        "the normaliser, where penalties are of the order of M squared. The footnote does not say whether "
        "gradients are projected, nor which step size and length are used, nor how learnt components are counted. "
        "All combinations are run, and two counts are reported: the streak, and the components within pi/8 of any "
        "player. The first depends on which player learns which component, which without order is arbitrary."
    )
