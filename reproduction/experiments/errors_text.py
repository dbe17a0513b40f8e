"""Claims and summary of `errors`."""

from __future__ import annotations

import math

import numpy as np

from reproduction.base import Claim, Results, holds_if

PAPERS_THRESHOLD = 18.0
"""In degrees, at kappa = 10."""
NEAR = 2.0
"""Degrees within which a threshold agrees with the paper's."""
STEEP = 5.0
"""A step is steep if the child goes from 22.5 to 67.5 degrees within this many degrees of error."""
EXACT = 0.05
"""Degrees up to which two angles agree."""
PLACES = ("circle", "sphere")
"""Where the child moves."""
READINGS = {"example": "the paper's example", "another parent": "a second game, not in the paper,"}
"""Games, as readings of claims that the paper makes about its example."""


def claims(results: Results) -> list[Claim]:
    """Compare the threshold, the step and the lemma with the games.

    The paper derives step and threshold from its example. Its example does not have them, another game does: both
    are reported.
    """
    printed = crossing(results["errors"], results["formulas"]["printed"])
    own, own_free = (_passes(results, "example", place) for place in PLACES)
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
            "the utilities of the example, not its printed formula",
        ),
        *(_soft_step(results, game, reading) for game, reading in READINGS.items()),
        *(_threshold(results, game, reading) for game, reading in READINGS.items()),
        Claim(
            "Lemma arctan_error_prop gives the child's optimum on a great circle.",
            f"Lemma and game are at most {lemma:.2g} degrees apart in both games, with the norm in the example "
            f"corrected (holds below {EXACT:g}).",
            holds_if(lemma < EXACT),
            "norms of directions in M itself",
        ),
    ]


def _soft_step(results: Results, game: str, reading: str) -> Claim:
    """Test whether a child on the circle has a steep step."""
    steep, at = _width(results, game, "circle"), _passes(results, game, "circle")
    return Claim(
        "The child's optimum depends on its parents' error by an arctan, a soft step.",
        "Range of the parents' error over which a child on the circle goes from 22.5 to 67.5 degrees: "
        f"{_degrees_or_none(steep)}; it passes 45 at {_degrees_or_none(at)} (holds if the range is below "
        f"{STEEP:g}).",
        holds_if(steep is not None and steep < STEEP),
        f"{reading} on {_diag(results['games'][game])}",
    )


def _threshold(results: Results, game: str, reading: str) -> Claim:
    """Test whether a child on the whole sphere has a threshold."""
    steep, at = _width(results, game, "sphere"), _passes(results, game, "sphere")
    near = "" if game == "example" else _nearer(results, at)
    return Claim(
        "There is a threshold of the parents' error above which a player does not learn its component.",
        "Range of the parents' error over which a child on the whole sphere goes from 22.5 to 67.5 degrees: "
        f"{_degrees_or_none(steep)}; it passes 45 at {_degrees_or_none(at)}{near} (holds if the range is below "
        f"{STEEP:g}).",
        holds_if(steep is not None and steep < STEEP),
        f"{reading} on {_diag(results['games'][game])}",
    )


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
    """Return whether the threshold of the second game is nearer to a prediction or to the paper's threshold.

    Non-orthogonal parents leave a reward in their plane, of about `Lambda_22` times the sine of the error. It
    exceeds the reward of the child's component from the arcsine of `Lambda_33 / Lambda_22` on.
    """
    if angle is None:
        return ""
    _, second, own, *_ = results["games"]["another parent"]["spectrum"]
    sine = math.degrees(math.asin(own / second))
    near, far = f"arcsin({own:g}/{second:g}) = {sine:.1f}", f"the paper's {PAPERS_THRESHOLD:g}"
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
        "formula; here it is the error at which the child's optimum passes 45 degrees. The claims about step and "
        "threshold are judged by the paper's example and by the second game, which is not in the paper."
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


def _diag(game: Results) -> str:
    return f"diag({', '.join(f'{value:g}' for value in game['spectrum'])})"


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
