"""The error of parents and the optimum of their child: the soft step of the worked example, and played games.

In the paper's example parent 1 errs towards `v_i`, the parents between it and the child towards `v_{i+1}`, and
the child may turn from `v_i` towards `v_1`. Here the child is the third of four axes. The second game is that of
`theory.soft_step`, where parent 1 errs mostly towards the component of another parent. In each game the child
moves on the great circle of the lemma, and on the whole sphere as in the real game.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eigengame.game import theory
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import rounded
from reproduction.experiments.errors_child import optimum_angles, played_angles
from reproduction.figures import panels
from reproduction.protocol import Protocol
from reproduction.trials import starts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "A parent's error against its child's optimum"
PAPER = "fig:arctan_err_dep, Example error_prop_example"

KAPPA, SECOND, LEAN = 10.0, 9.0, 0.1
D, PARENTS = 4, 2
PLACES = {"circle": (1.0, 0.0, 1.0, 0.0), "sphere": (1.0, 1.0, 1.0, 1.0)}
"""Axes along which the child may move: the circle through `v_1` and `v_3`, or all."""
PAPERS_THRESHOLD = 18.0
"""In degrees, at kappa = 10."""
NEAR = 2.0
"""Degrees within which a threshold agrees with the paper's."""
STEEP = 5.0
"""A step is steep if the child goes from 22.5 to 67.5 degrees within this many degrees of error."""
EXACT = 0.05
"""Degrees up to which two angles agree."""

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
        "soft step": theory.soft_step(errors, KAPPA, LEAN, SECOND),
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


def claims(results: Results) -> list[Claim]:
    """Compare the threshold, the step and the lemma with the games."""
    printed = crossing(results["errors"], results["formulas"]["printed"])
    own, own_free = (_passes(results, "example", place) for place in PLACES)
    other, free = (_passes(results, "another parent", place) for place in PLACES)
    steep, steep_free = (_width(results, "another parent", place) for place in PLACES)
    lemma = max(game["lemma"] for game in results["games"].values())
    return [
        Claim(
            "In the worked example with kappa = 10, parents must err by less than about 18 degrees for the "
            "child's optimum to be near its component.",
            f"The printed formula passes 45 degrees at a parents' error of {_degrees_or_none(printed)}; the game "
            f"of the example at {_degrees_or_none(own)} on the circle and {_degrees_or_none(own_free)} on the "
            f"sphere, where the child's error differs from the parents' by at most {_example_gap(results):.2g} "
            f"degrees (holds if both are {PAPERS_THRESHOLD:g} within {NEAR:g}).",
            holds_if(_near(own, PAPERS_THRESHOLD) and _near(own_free, PAPERS_THRESHOLD)),
            "the norm of the example corrected",
        ),
        Claim(
            "The child's optimum depends on its parents' error by an arctan, a soft step.",
            "Range of the parents' error over which a child on the circle goes from 22.5 to 67.5 degrees: "
            f"{_degrees_or_none(_width(results, 'example', 'circle'))} in the example; {_degrees_or_none(steep)}, "
            f"through 45 at {_degrees_or_none(other)}, on {_diag(results['games']['another parent'])} with parent "
            f"1 erring towards v_2 (judged by the second game: below {STEEP:g}).",
            holds_if(steep is not None and steep < STEEP),
            "the second game of the errata",
        ),
        Claim(
            "There is a threshold of the parents' error above which a player does not learn its component.",
            "The same range for a child on the whole sphere, in the second game: "
            f"{_degrees_or_none(steep_free)}, through 45 at {_degrees_or_none(free)}{_nearer(results, free)} "
            f"(holds if within {STEEP:g}).",
            holds_if(steep_free is not None and steep_free < STEEP),
            "the second game of the errata, child on the whole sphere",
        ),
        Claim(
            "Lemma arctan_error_prop gives the child's optimum on a great circle.",
            f"Lemma and game are at most {lemma:.2g} degrees apart in both games, with the norm in the example "
            f"corrected (holds below {EXACT:g}).",
            holds_if(lemma < EXACT),
            "the norm of the example corrected",
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the child's optimum against the parents' error, with the paper's example on the left."""
    figure, axes = panels(2, width=4.6, height=3.5)
    x, formulas = results["errors"], results["formulas"]
    left, right = axes[0]
    left.plot(x, formulas["printed"], "--", color="#b5382f", label="formula as printed")
    left.plot(x, formulas["corrected"], color="#1f5fa8", label="formula corrected")
    right.plot(x, formulas["soft step"], color="#1f5fa8", label="by the lemma, on the circle")
    free = results["games"]["another parent"]["sphere"]["exact"]
    right.plot(x, free, color="#d9822b", label="exact, on the sphere")
    for one, game, formula in (
        (left, "example", "printed"),
        (right, "another parent", "soft step"),
    ):
        _dots(one, results, game)
        threshold = crossing(x, formulas[formula])
        if threshold is not None:
            one.axvline(threshold, color="#999999", linewidth=0.8, zorder=0)
            one.text(threshold + 0.6, 5, f"{threshold:.1f}°", fontsize=7, color="#777777")
        one.set(xlabel="parents' angular error (degrees)", ylim=(-3, 93), yticks=range(0, 91, 15))
    left.set_title(r"the example: parent 1 errs towards $v_i$", fontsize=9)
    right.set_title(r"another game: parent 1 errs mostly towards $v_2$", fontsize=9)
    left.set_ylabel(r"child's optimum from $v_i$ (degrees)")
    left.legend(fontsize=7, loc="upper left", frameon=False)
    right.legend(fontsize=7, loc="center right", frameon=False)
    return figure


def summary(results: Results) -> str:
    """Describe whether the games have a step, and where."""
    games = results["games"]
    apart = max(game[place]["apart"] for game in games.values() for place in PLACES)
    return (
        "Lines are formulas; marks are the end points of played games, at most "
        f"{apart:.2g} degrees from the exact maximum of the child's utility (the top eigenvector of its quadratic "
        f"form). Left, the paper's example on {_diag(games['example'])}. {_example_step(results)} Right, a second "
        f"game on {_diag(games['another parent'])}: parent 1 errs towards v_2, with a part of {results['lean']} "
        f"towards v_3. {_second_step(results)}"
    )


def _example_step(results: Results) -> str:
    """Describe whether the game of the example has the step of the printed formula."""
    printed = crossing(results["errors"], results["formulas"]["printed"])
    own, gap = _passes(results, "example", "sphere"), _example_gap(results)
    said = (
        f"The printed formula passes 45 degrees at {_degrees_or_none(printed)}, the game on the sphere at "
        f"{_degrees_or_none(own)}."
    )
    if gap < EXACT:
        return (
            f"{said} The game has no step: the child's error equals that of its parents (within {gap:.2g} "
            "degrees). The printed formula uses the first eigenvalue for a norm that is the child's own "
            "eigenvalue; with the correction, formula and game agree."
        )
    return f"{said} The child's error differs from that of its parents by up to {gap:.2g} degrees."


def _second_step(results: Results) -> str:
    """Describe the thresholds of the second game on the circle and on the sphere."""
    circle, free = (_passes(results, "another parent", place) for place in PLACES)
    said = (
        f"The child passes 45 degrees at {_degrees_or_none(circle)} on the circle of the lemma, and at "
        f"{_degrees_or_none(free)} on the sphere{_nearer(results, free)}."
    )
    if circle is None or free is None:
        return f"{said} The thresholds cannot be compared, since one is missing."
    if free >= circle:
        return f"{said} The threshold on the sphere is not stricter than that of the lemma."
    return (
        f"{said} The threshold on the sphere is stricter than that of the lemma: parents that are not orthogonal "
        "leave a reward in their own plane, of about the second eigenvalue times the sine of the error."
    )


def _nearer(results: Results, angle: float | None) -> str:
    """Return whether an angle is nearer to arcsin(1/kappa) or to the paper's threshold."""
    if angle is None:
        return ""
    sine = math.degrees(math.asin(1 / results["kappa"]))
    near, far = f"arcsin(1/kappa) = {sine:.1f}", f"the paper's {PAPERS_THRESHOLD:g}"
    if abs(angle - sine) > abs(angle - PAPERS_THRESHOLD):
        near, far = far, near
    return f", nearer to {near} than to {far} degrees"


def _example_gap(results: Results) -> float:
    """Return the largest difference between the child's and the parents' error in the example, in degrees."""
    game = results["games"]["example"]
    return max(
        float(np.abs(np.subtract(game[place]["exact"], results["errors"])).max())
        for place in PLACES
    )


def reading(results: Results) -> str:
    """Describe the players of the game."""
    size = results["size"]
    return (
        f"Two parents are fixed at an error, and a third player follows its utility for {size['rounds']} "
        f"Riemannian steps from each of {size['trials']} random starts. The paper states the threshold for its "
        "formula; here it is the error at which the child's optimum passes 45 degrees. The claims about the step "
        "are judged by the second game, which is not in the paper."
    )


def crossing(errors: list[float], child: list[float], level: float = 45.0) -> float | None:
    """Return the parents' error at which the child's optimum first reaches a level, interpolated."""
    above = np.flatnonzero(np.asarray(child) >= level)
    if not above.size:
        return None
    i = int(above[0])
    if i == 0:
        return errors[0]
    share = (level - child[i - 1]) / (child[i] - child[i - 1])
    return errors[i - 1] + share * (errors[i] - errors[i - 1])


def _example(errors: np.ndarray) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the spectrum of the paper's game, and its parents at each error, shape (points, 2, 4)."""
    away = np.array([[0.0, 0, 1, 0], [0, 0, 0, 1]])
    return (KAPPA, KAPPA / 2, 1.0, 0.5), _turned(np.stack([errors, errors]), away)


def _another_parent(errors: np.ndarray) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the game of `theory.soft_step`; its fourth eigenvalue is 0."""
    away = np.array([[0.0, math.sqrt(1 - LEAN**2), LEAN, 0], [0, 0, 1, 0]])
    return (KAPPA, SECOND, 1.0, 0.0), _turned(np.stack([errors, 0 * errors]), away)


def _turned(angles: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Rotate parents from their axes by angles (2, points) towards directions (2, 4)."""
    theta = angles.T[:, :, None]
    return np.cos(theta) * np.eye(D)[None, :PARENTS] + np.sin(theta) * away[None]


def _degrees(radians: np.ndarray) -> list[float]:
    return rounded(np.degrees(radians))


def _largest(radians: np.ndarray) -> float:
    """Return the largest absolute value in degrees."""
    return rounded(np.degrees(np.abs(radians).max()))


def _diag(game: Results) -> str:
    return f"diag({', '.join(f'{value:g}' for value in game['spectrum'])})"


def _dots(axes: Axes, results: Results, game: str) -> None:
    """Mark the end points of the child on the circle and on the sphere, at about 30 errors."""
    every = slice(None, None, max(1, len(results["errors"]) // 30))
    for place, mark, colour in (("sphere", "s", "#d9822b"), ("circle", "o", "#222222")):
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


def _passes(results: Results, game: str, place: str) -> float | None:
    """Return the parents' error at which the played child passes 45 degrees."""
    return crossing(results["errors"], results["games"][game][place]["played"])


def _width(results: Results, game: str, place: str) -> float | None:
    """Return the range of error over which the child goes from 22.5 to 67.5 degrees."""
    child = results["games"][game][place]["played"]
    low, high = (crossing(results["errors"], child, level) for level in (22.5, 67.5))
    return None if low is None or high is None else high - low


def _near(value: float | None, wanted: float) -> bool:
    """Return whether an angle in degrees agrees with the paper's."""
    return value is not None and abs(value - wanted) <= NEAR


def _degrees_or_none(degrees: float | None) -> str:
    return "none up to 45 degrees" if degrees is None else f"{degrees:.1f} degrees"
