"""The error of parents and the optimum of their child: the soft step of the worked example, and played games.

In the paper's example parent 1 errs towards `v_i`, the parents between it and the child towards `v_{i+1}`, and
the child may turn from `v_i` towards `v_1`. Here the child is the third of four axes. In a second game,
on diag(10, 9, 1), parent 1 errs mostly towards the component of another parent. In each game the child
moves on the great circle of the lemma, and on the whole sphere as in the real game.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eigengame.game import theory
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.experiments.errors_child import optimum_angles, played_angles
from reproduction.experiments.errors_text import claims, crossing, reading, summary
from reproduction.figures import SERIES, panels
from reproduction.protocol import Protocol
from reproduction.trials import starts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "A parent's error against its child's optimum"
PAPER = "fig:arctan_err_dep, Example error_prop_example"

KAPPA, SECOND, LEAN = 10.0, 9.0, 0.1
"""First and second eigenvalue of the second game, for a child of eigenvalue 1, and the lean of its parent."""
SECOND_AWAY = np.array([[0.0, math.sqrt(1 - LEAN**2), LEAN], [0.0, 0.0, 1.0]])
"""Directions of the errors of the parents of the second game; parent 2 has none."""
D, PARENTS = 4, 2
PLACES = {"circle": (1.0, 0.0, 1.0, 0.0), "sphere": (1.0, 1.0, 1.0, 1.0)}
"""Axes along which the child may move: the circle through `v_1` and `v_3`, or all."""

PROTOCOL = Protocol(
    full={"points": 91, "trials": 10, "rounds": 20_000},
    quick={"points": 10, "trials": 2, "rounds": 500},
)


def measure(run: Run) -> Results:
    """Compute the angle of the child's optimum for each error of its parents, by formula and by play."""
    size = PROTOCOL.size(run.quick)
    errors = np.radians(np.linspace(0, 45, size.points))
    begun = starts(0, size.trials, 1, D)[:, 0]
    formulas = {
        "printed": theory.worked_example(errors, KAPPA),
        "corrected": theory.worked_example_corrected(errors),
        "soft step": _lemma_of_second_game(errors),
    }
    results: Results = {
        "kappa": KAPPA,
        "lean": LEAN,
        "size": vars(size),
        "errors": _degrees(errors),
        "formulas": {name: _degrees(child) for name, child in formulas.items()},
        "games": {},
    }
    for name, game, lemma in (
        ("example", _example, formulas["corrected"]),
        ("another parent", _another_parent, formulas["soft step"]),
    ):
        spectrum, parents = game(errors)
        kept: Results = {"spectrum": list(spectrum)}
        for place, free in PLACES.items():
            run.progress(f"{name}: child on the {place}")
            exact = optimum_angles(spectrum, parents, free)
            played = played_angles(spectrum, parents, free, begun, size.rounds)
            kept[place] = {"exact": _degrees(exact), "played": _degrees(played.mean(axis=0))}
            kept[place]["apart"] = _largest(played - exact[None, :])
            if place == "circle":
                kept["lemma"] = _largest(lemma - exact)
        results["games"][name] = kept
    return results


def draw(results: Results) -> Figure:
    """Draw the child's optimum against the parents' error, with the paper's example on the left."""
    figure, axes = panels(2, width=3.6, height=3.1)
    x, formulas = results["errors"], results["formulas"]
    left, right = axes[0]
    left.plot(x, formulas["printed"], ":", color=SERIES[3], label="example: formula as printed")
    left.plot(x, formulas["corrected"], color=SERIES[0], label="formula on the circle")
    right.plot(x, formulas["soft step"], color=SERIES[0])
    free = results["games"]["another parent"]["sphere"]["exact"]
    right.plot(x, free, "--", color=SERIES[1], label="exact, on the sphere")
    thresholds = [crossing(x, formulas[one]) for one in ("printed", "soft step")]
    said = " and ".join("none" if one is None else f"{one:.1f}°" for one in thresholds)
    for one, game, at in zip(axes[0], ("example", "another parent"), thresholds, strict=True):
        _dots(one, results, game)
        if at is not None:
            one.axvline(
                at, color="#999999", linewidth=0.8, zorder=0, label=f"formulas pass 45° at {said}"
            )
        one.set(xlabel="parents' angular error (degrees)", ylim=(-3, 93), yticks=range(0, 91, 15))
    left.set_title(r"the example: parent 1 errs towards $v_i$", fontsize=9)
    right.set_title(r"second game: parent 1 errs towards $v_2$", fontsize=9)
    left.set_ylabel(r"child's optimum from $v_i$ (degrees)")
    labelled = {
        label: handle
        for one in (left, right)
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        labelled.values(), labelled.keys(), loc="outside lower center", ncols=3, fontsize=8
    )
    return figure


def _example(errors: np.ndarray) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the spectrum of the paper's game, and its parents at each error, shape (points, 2, 4)."""
    away = np.array([[0.0, 0, 1, 0], [0, 0, 0, 1]])
    return (KAPPA, KAPPA / 2, 1.0, 0.5), _turned(np.stack([errors, errors]), away)


def _another_parent(errors: np.ndarray) -> tuple[tuple[float, ...], np.ndarray]:
    """Return a game whose parent 1 errs towards `v_2`; the fourth eigenvalue is 0."""
    away = np.pad(SECOND_AWAY, ((0, 0), (0, 1)))
    return (KAPPA, SECOND, 1.0, 0.0), _turned(np.stack([errors, 0 * errors]), away)


def _lemma_of_second_game(errors: np.ndarray) -> np.ndarray:
    """Return the child's optimum in the second game by Lemma arctan_error_prop, in radians."""
    spectrum, child = [KAPPA, SECOND, 1.0], [1.0, 0.0, 0.0]
    return np.array(
        [
            theory.error_propagation(spectrum, [error, 0.0], SECOND_AWAY, child).deviation()
            for error in errors
        ]
    )


def _turned(angles: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Rotate parents from their axes by angles (2, points) towards directions (2, 4)."""
    theta = angles.T[:, :, None]
    return np.cos(theta) * np.eye(D)[None, :PARENTS] + np.sin(theta) * away[None]


def _degrees(radians: np.ndarray) -> list[float]:
    return rounded(np.degrees(radians))


def _largest(radians: np.ndarray) -> float:
    """Return the largest absolute value in degrees."""
    return rounded(np.degrees(np.abs(radians).max()))


def _dots(axes: Axes, results: Results, game: str) -> None:
    """Mark the end points of the child on the circle and on the sphere, at about 30 errors."""
    every = slice(None, None, max(1, len(results["errors"]) // 30))
    for place, mark, colour in (("sphere", "s", SERIES[1]), ("circle", "o", "#222222")):
        axes.plot(
            results["errors"][every],
            results["games"][game][place]["played"][every],
            mark,
            markersize=6 if mark == "s" else 3,
            color=colour,
            fillstyle="none",
            markeredgewidth=0.9,
            label=f"played on the {place}",
        )
