"""The game without its order, without its normaliser, and without both, on the paper's two spectra."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.algorithms import Alpha
from eigengame.game import Rules, SymmetricRows
from eigengame.linalg.products import full_product
from eigengame.metrics import STREAK_ANGLE
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import mean_curve, rounded
from reproduction.experiments.ablation_figure import draw_ablation
from reproduction.protocol import GRID, HELD_OUT, Protocol, Runs
from reproduction.streaks import D, spectra
from reproduction.trials import Family, seeded_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The game without its order and its normaliser"
PAPER = "Sec. Message Passing on a DAG (footnote), appendix Design Decisions"

GAMES = {
    "the game": Rules(),
    "without order": Rules(hierarchy=False),
    "without normaliser": Rules(normaliser=False),
    "without both": Rules(hierarchy=False, normaliser=False),
}

VARIANTS = {"EigenGame": False, "EigenGame^R": True}
"""Whether gradients are projected on the tangent space."""
QUICK_VARIANTS = ("EigenGame",)
"""Variants of a quick run: each game of each variant is compiled."""

SMALLER = (*GRID, 1e-7)
"""Step sizes without the normaliser, where the gradient of a penalty is of the order of M squared, here 1e6."""

FOOTNOTE = {"without order": 1, "without both": 5}
"""Number of components learnt according to the paper."""


def _family(rules: Rules, riemannian: bool, step: Any) -> Alpha:
    return Alpha(step, riemannian=riemannian, rules=rules)


FAMILIES: Mapping[tuple[str, str], Family] = {
    (variant, game): partial(_family, rules, riemannian)
    for variant, riemannian in VARIANTS.items()
    for game, rules in GAMES.items()
}
"""Created once, so that each is compiled once."""


PROTOCOL = Protocol(
    full={"updates": 5000, "every": 50, "trials": 10},
    quick={"updates": 40, "every": 20, "trials": 2},
)


class Closeness(NamedTuple):
    """Angles between players and components, and the number of players at the first component.

    Attributes
    ----------
    own : array of shape (..., k)
        Angle of each player to its component.
    nearest : array of shape (..., k)
        Angle of each component to the closest player.
    crowd : array of shape (...)
        Number of players within pi/8 of the first component.
    """

    own: Any
    nearest: Any
    crowd: Any


def closeness(components: jax.Array, truth: jax.Array) -> Any:
    """Compute the closeness of players; a `Measure` of `play_trials`."""
    cosines = jnp.abs(full_product(components, truth.T))
    nearest = jnp.arccos(jnp.minimum(jnp.max(cosines, axis=0), 1))
    crowd = jnp.sum(cosines[:, 0] >= np.cos(STREAK_ANGLE))
    return Closeness(metrics.angular_error(components, truth), nearest, crowd)


def streak(seen: Closeness) -> np.ndarray:
    """Return the streak, shape (...)."""
    return metrics.streak_of(seen.own, STREAK_ANGLE)


def found(seen: Closeness) -> np.ndarray:
    """Return the number of components with any player within pi/8, shape (...).

    No player is that close to two components, so that no matching of players to components finds more.
    """
    return np.sum(seen.nearest <= STREAK_ANGLE, axis=-1)


def measure(run: Run) -> Results:
    """Run the four games with and without the projection on both spectra."""
    size = PROTOCOL.size(run.quick)
    results: Results = {"components": D, "size": vars(size), "panels": {}}
    truth = jnp.eye(D, dtype=jnp.float32)
    for spectrum, values in spectra().items():
        rows = SymmetricRows(jnp.diag(jnp.asarray(values, jnp.float32)))
        panel: Results = {variant: {} for variant in (QUICK_VARIANTS if run.quick else VARIANTS)}
        for (variant, game), family in FAMILIES.items():
            if variant not in panel:
                continue
            run.progress(f"{spectrum} spectrum: {variant}, {game}")
            grid = GRID if GAMES[game].normaliser else SMALLER
            runs = seeded_runs(family, rows, truth, closeness, k=D, **vars(size))
            panel[variant][game] = _tuned(runs, grid)
        results["panels"][spectrum] = panel
    results["iterations"] = list(range(size.every, size.updates + 1, size.every))
    return results


def _tuned(runs: Runs, grid: tuple[float, ...]) -> Results:
    """Choose a step size on held-out runs and run it. Also keep the maxima over all runs."""
    tried = {step: runs(step, HELD_OUT) for step in grid}
    # If no step size gives a streak, the one that finds most components.
    best = max(tried, key=lambda step: (streak(tried[step]).mean(), found(tried[step]).mean()))
    shown = runs(best, 0)
    every = [*tried.values(), shown]
    return {
        "step": best,
        "tried": {
            f"{step:g}": {
                "streak": rounded(streak(seen)[:, -1].mean()),
                "found": rounded(found(seen)[:, -1].mean()),
            }
            for step, seen in tried.items()
        },
        "most": {
            "streak": int(max(streak(seen).max() for seen in every)),
            "found": int(max(found(seen).max() for seen in every)),
        },
        "crowd": rounded(shown.crowd[:, -1].mean()),
        "streak": mean_curve(streak(shown)),
        "found": mean_curve(found(shown)),
    }


def claims(results: Results) -> list[Claim]:
    """Compare the footnote and the paragraph on the normaliser with the results."""
    unordered, neither = (_most(results, game) for game in FOOTNOTE)
    ends = _best_ends(results, "without both")
    return [
        Claim(
            "Without its order the game learns at most 1 component.",
            f"Longest streak of any trial at any step size: {unordered['streak']}; components within pi/8 of any "
            f"player: at most {unordered['found']} (judged by the streak).",
            holds_if(unordered["streak"] <= FOOTNOTE["without order"]),
            "runs of 5000 iterations, step sizes of Alg. 2",
        ),
        Claim(
            "Without order and normaliser it learns 5.",
            f"At the best step sizes a final mean streak of {ends['streak']:.1f}, and {ends['found']:.1f} "
            f"components within pi/8 of any player; maxima over all trials and times: a streak of "
            f"{neither['streak']}, and {neither['found']} components (holds if either final mean rounds to 5).",
            holds_if(any(round(end) == FOOTNOTE["without both"] for end in ends.values())),
            "runs of 5000 iterations, step sizes of Alg. 2",
        ),
        _better(results, "The order improves convergence", "without order"),
        _better(results, "The normaliser improves convergence", "without normaliser"),
    ]


def _better(results: Results, claim: str, game: str) -> Claim:
    """Compare the final mean streak with that of a reduced game, for every variant and spectrum."""
    pairs = {
        f"{variant}, {spectrum}": [kept[one]["streak"]["mean"][-1] for one in ("the game", game)]
        for spectrum, panel in results["panels"].items()
        for variant, kept in panel.items()
    }
    said = "; ".join(f"{where}: {full:.1f} and {less:.1f}" for where, (full, less) in pairs.items())
    return Claim(
        f"{claim}.",
        f"Final mean streak with it and without: {said} (holds if larger everywhere).",
        holds_if(all(full > less for full, less in pairs.values())),
        "runs of 5000 iterations, step sizes of Alg. 2",
    )


def _kept(results: Results, game: str) -> list[Results]:
    """Return the measurements of a game for every spectrum and variant."""
    return [kept[game] for panel in results["panels"].values() for kept in panel.values()]


def _most(results: Results, game: str) -> dict[str, int]:
    """Return the maxima of a game over all trials and times."""
    kept = _kept(results, game)
    return {kind: max(one["most"][kind] for one in kept) for kind in ("streak", "found")}


def _best_ends(results: Results, game: str) -> dict[str, float]:
    """Return the largest final means over variants, spectra and step sizes."""
    ends = [end for one in _kept(results, game) for end in one["tried"].values()]
    return {kind: max(end[kind] for end in ends) for kind in ("streak", "found")}


def draw(results: Results) -> Figure:
    """Draw streaks over iterations, and below them the components found at each step size."""
    return draw_ablation(results, FOOTNOTE.values())


def summary(results: Results) -> str:
    """Describe how the counts of the footnote compare, and which reduced game is nearest to the 5."""
    return (
        "Above, streaks of EigenGame; below, the number of components within pi/8 of any player at the end, for "
        "each step size, with and without the projection. Grey lines are the footnote's 1 and 5. "
        f"{_without_order(results)} {_without_both(results)}"
    )


def _without_order(results: Results) -> str:
    """Describe the streaks without order, and how many players share the first component."""
    most, kept = _most(results, "without order")["streak"], _kept(results, "without order")
    ends = [end["streak"] for one in kept for end in one["tried"].values()]
    some = sum(end >= 0.5 for end in ends)
    said = (
        f"Without order the longest streak is {most}, {_against(most, FOOTNOTE['without order'])} the footnote's "
        f"{FOOTNOTE['without order']}; {some} of {len(ends)} combinations of variant, spectrum and step size end "
        "with a mean streak of at least 0.5."
    )
    crowds = {
        spectrum: panel["EigenGame"]["without order"]["crowd"]
        for spectrum, panel in results["panels"].items()
    }
    shared = [
        f"{crowd:.0f} of {results['components']} players ({spectrum} spectrum)"
        for spectrum, crowd in crowds.items()
        if crowd >= 2
    ]
    if not shared:
        return (
            f"{said} At the chosen step size of EigenGame no two players share the first component."
        )
    return (
        f"{said} At the chosen step size of EigenGame, {' and '.join(shared)} end within pi/8 of the first "
        "component: they crowd there, rather than one of them learning it."
    )


def _without_both(results: Results) -> str:
    """Describe the game without order and normaliser, and the reduced game nearest to the footnote's 5."""
    wanted, most = FOOTNOTE["without both"], _most(results, "without both")
    reduced = {game: _most(results, game) for game in GAMES if game != "the game"}
    nearest = min(reduced, key=lambda game: abs(reduced[game]["streak"] - wanted))
    return (
        f"Without order and normaliser the longest streak of any run is {most['streak']}, "
        f"{_against(most['streak'], wanted)} the footnote's {wanted}, and at most {most['found']} components are "
        f"found by any player. Of the three reduced games the one {nearest} comes nearest to {wanted}, with "
        f"streaks of up to {reduced[nearest]['streak']} and up to {reduced[nearest]['found']} components found."
    )


def _against(value: float, wanted: float) -> str:
    return "equal to" if value == wanted else "below" if value < wanted else "above"


def reading(results: Results) -> str:
    """Describe what the footnote leaves open."""
    size = results["size"]
    return (
        f"All {results['components']} components, {size['trials']} trials of {size['updates']} iterations, step "
        "sizes chosen on as many held-out trials from 1e-3 to 1e-6, and down to 1e-7 without the normaliser, where "
        "penalties are of the order of M squared. The footnote does not say whether gradients are projected, nor "
        "which step size is used, nor how learnt components are counted. All combinations are run, and two counts "
        "are reported: the streak, and the components within pi/8 of any player."
    )
