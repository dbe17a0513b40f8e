"""A parent's error against its child's optimum: the soft step of the worked example, and the games played.

The paper's example has three kinds of player: parent 1 errs towards `v_i`, the parents between it and the
child towards `v_{i+1}`, and the child may turn from `v_i` towards `v_1`. Here the child is the third of four
axes. Beside it stands the game of `theory.soft_step`, where parent 1 errs mostly towards another parent's
component. In each the child answers twice: on the great circle that the lemma is about, and on the whole
sphere, where players of the real game are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._child import optimum_angles, played_angles
from eigengame.experiments._figures import panels
from eigengame.experiments._protocol import rounded
from eigengame.experiments._trials import starts
from eigengame.game import theory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "A parent's error against its child's optimum"
PAPER = "fig:arctan_err_dep, Example error_prop_example"

KAPPA, LEAN = 10.0, 0.1
D, PARENTS = 4, 2
PLACES = {"circle": (1.0, 0.0, 1.0, 0.0), "sphere": (1.0, 1.0, 1.0, 1.0)}
"""Where a child may go: the circle through `v_1` and `v_3`, or anywhere."""


class Size(NamedTuple):
    """How much is played."""

    points: int
    trials: int
    rounds: int


FULL = Size(points=91, trials=10, rounds=20_000)
QUICK = Size(points=10, trials=2, rounds=500)


def measure(run: Run) -> Results:
    """Return the angle of the child's optimum for each error of its parents, by formula and by play."""
    size = QUICK if run.quick else FULL
    errors = np.radians(np.linspace(0, 45, size.points))
    begun = starts(0, size.trials, 1, D)[:, 0]
    formulas = {
        "printed": theory.worked_example(errors, KAPPA),
        "corrected": theory.worked_example_corrected(errors),
        "soft step": theory.soft_step(errors, KAPPA, LEAN),
    }
    results: Results = {
        "kappa": KAPPA,
        "lean": LEAN,
        "size": size._asdict(),
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
            run.say(f"{name}: the child answers on the {place}")
            exact = optimum_angles(spectrum, parents, free)
            played = played_angles(spectrum, parents, free, begun, size.rounds)
            kept[place] = {"exact": _degrees(exact), "played": _degrees(played.mean(axis=0))}
            kept[place]["apart"] = _largest(played - exact[None, :])
            if place == "circle":
                kept["lemma"] = _largest(lemma - exact)
        results["games"][name] = kept
    return results


def claims(results: Results) -> list[Claim]:
    """Hold the threshold, the step and the lemma against the games."""
    printed = crossing(results["errors"], results["formulas"]["printed"])
    own, own_free = (_passes(results, "example", place) for place in ("circle", "sphere"))
    other, free = (_passes(results, "another parent", place) for place in ("circle", "sphere"))
    steep, steep_free = (_width(results, place) for place in ("circle", "sphere"))
    lemma = max(game["lemma"] for game in results["games"].values())
    return [
        Claim(
            "In the worked example with kappa = 10, parents must err by less than about 18 degrees for the "
            "child's optimum to be near its component.",
            f"The printed formula passes 45 degrees at a parents' error of {_said(printed)}; the example's own "
            f"game does at {_said(own)}, on the circle, and {_said(own_free)}, on the sphere: the child is "
            "off by as much as its parent.",
            _near(own, 18) and _near(own_free, 18),
        ),
        Claim(
            "The child's optimum depends on its parents' error by an arctan, a soft step.",
            f"Not in the example, but on diag(10, 10, 1) with parent 1 erring towards v_2: the child on its "
            f"circle goes from 22.5 to 67.5 degrees within {_said(steep)}, through 45 at {_said(other)}.",
            steep is not None and steep < 5,
        ),
        Claim(
            "There is a threshold of the parents' error above which a player does not learn its component.",
            f"A child on its whole sphere, in that same game, goes from 22.5 to 67.5 degrees within "
            f"{_said(steep_free)}, through 45 at {_said(free)}: near arcsin(1/kappa) = "
            f"{math.degrees(math.asin(1 / results['kappa'])):.1f} degrees and not 18.",
            steep_free is not None and steep_free < 5,
        ),
        Claim(
            "Lemma arctan_error_prop gives the child's optimum on a great circle.",
            f"Lemma and game are at most {lemma:.2g} degrees apart, in both games, once the example's norm "
            "is put right.",
            lemma < 0.05,
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the child's optimum against the parents' error, the paper's example at the left."""
    figure, axes = panels(2, width=4.6, height=3.5)
    x, formulas = results["errors"], results["formulas"]
    left, right = axes[0]
    left.plot(x, formulas["printed"], "--", color="#b5382f", label="formula as printed")
    left.plot(x, formulas["corrected"], color="#1f5fa8", label="formula corrected")
    right.plot(x, formulas["soft step"], color="#1f5fa8", label="by the lemma, on the circle")
    free = results["games"]["another parent"]["sphere"]["exact"]
    right.plot(x, free, color="#d9822b", label="exact, on the sphere")
    threshold = math.degrees(math.asin(results["kappa"] ** -0.5))
    for one, game in ((left, "example"), (right, "another parent")):
        _dots(one, results, game)
        one.axvline(threshold, color="#999999", linewidth=0.8, zorder=0)
        one.text(threshold + 0.6, 5, f"{threshold:.1f}°", fontsize=7, color="#777777")
        one.set(xlabel="parents' angular error (degrees)", ylim=(-3, 93), yticks=range(0, 91, 15))
    left.set_title(r"the example: parent 1 errs towards $v_i$", fontsize=9)
    right.set_title(r"another game: parent 1 errs mostly towards $v_2$", fontsize=9)
    left.set_ylabel(r"child's optimum from $v_i$ (degrees)")
    left.legend(fontsize=7, loc="upper left", frameon=False)
    right.legend(fontsize=7, loc="center right", frameon=False)
    return figure


def words(results: Results) -> str:
    """Say what was played and where it parts from the paper."""
    printed = crossing(results["errors"], results["formulas"]["printed"])
    own = _passes(results, "example", "sphere")
    circle, free = (_passes(results, "another parent", place) for place in ("circle", "sphere"))
    games, size = results["games"], results["size"]
    apart = max(game[place]["apart"] for game in games.values() for place in PLACES)
    return (
        f"Parents are fixed at an error, and a third player climbs its utility by {size['rounds']} Riemannian "
        f"steps from each of {size['trials']} random starts. Lines are formulas; marks are where it ended, at most "
        f"{apart:.2g} degrees from the exact maximum (the top eigenvector of its quadratic form). Left, the "
        f"paper's example on {_diag(games['example'])}. The printed formula has its soft step, "
        f"through 45 degrees at {_said(printed)}, but the game has none: a norm is put as the first eigenvalue "
        "where it is the child's own, and with that put right the child is off by exactly what its parent is "
        f"off, whatever kappa, and passes 45 degrees at {_said(own)}. Right, a game that does step, on "
        f"{_diag(games['another parent'])}: parent 1 errs towards v_2, with a part of "
        f"{results['lean']} towards v_3. Kept to the circle through v_3 and v_1, as in the lemma, the child loses "
        f"v_3 at {_said(circle)}, by an arctan as the paper says. Let go, it loses it already at {_said(free)}: "
        "two parents that are not orthogonal leave a third something in their own plane, kappa times the sine "
        "of the error. So there is a threshold, and for players that may go anywhere it is the stricter one."
    )


def crossing(errors: list[float], child: list[float], level: float = 45.0) -> float | None:
    """Return the parents' error at which the child's optimum first reaches a level, between points."""
    above = np.flatnonzero(np.asarray(child) >= level)
    if not above.size:
        return None
    i = int(above[0])
    if i == 0:
        return errors[0]
    share = (level - child[i - 1]) / (child[i] - child[i - 1])
    return errors[i - 1] + share * (errors[i] - errors[i - 1])


def _example(errors: np.ndarray) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the paper's game: its spectrum, and its parents at each error, shape (points, 2, 4)."""
    away = np.array([[0.0, 0, 1, 0], [0, 0, 0, 1]])
    return (KAPPA, KAPPA / 2, 1.0, 0.5), _turned(np.stack([errors, errors]), away)


def _another_parent(errors: np.ndarray) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the game of `theory.soft_step`; its fourth axis is empty."""
    away = np.array([[0.0, math.sqrt(1 - LEAN**2), LEAN, 0], [0, 0, 1, 0]])
    return (KAPPA, KAPPA, 1.0, 0.0), _turned(np.stack([errors, 0 * errors]), away)


def _turned(angles: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Return parents turned from their axes by angles (2, points) towards directions (2, 4)."""
    theta = angles.T[:, :, None]
    return np.cos(theta) * np.eye(D)[None, :PARENTS] + np.sin(theta) * away[None]


def _degrees(radians: np.ndarray) -> list[float]:
    return rounded(np.degrees(radians))


def _largest(radians: np.ndarray) -> float:
    """Return the largest size in degrees."""
    return _degrees(np.abs(radians).max(keepdims=True).ravel())[0]


def _diag(game: Results) -> str:
    return f"diag({', '.join(f'{value:g}' for value in game['spectrum'])})"


def _dots(axes: Axes, results: Results, game: str) -> None:
    """Draw where the child ended, on the circle and on the sphere; every mark would hide the lines."""
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
    """Return the parents' error at which the played child is halfway to a right angle."""
    return crossing(results["errors"], results["games"][game][place]["played"])


def _width(results: Results, place: str) -> float | None:
    """Return how much more error takes the child from a quarter to three quarters of a right angle."""
    child = results["games"]["another parent"][place]["played"]
    low, high = (crossing(results["errors"], child, level) for level in (22.5, 67.5))
    return None if low is None or high is None else high - low


def _near(value: float | None, wanted: float) -> bool:
    """Say whether an angle in degrees is within two of what the paper says."""
    return value is not None and abs(value - wanted) <= 2


def _said(degrees: float | None) -> str:
    return "none up to 45 degrees" if degrees is None else f"{degrees:.1f} degrees"
