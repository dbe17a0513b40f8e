"""Alg. 1 against its own bounds: angles reached, iterations used, and the rule of t_i on scaled data.

Players learn one after the other. A turn ends when the Riemannian gradient is within min(|first|/2, rho_i), which
is what t_i iterations are there to ensure; t_i is then computed from the same first gradient, and compared.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eigengame.algorithms import Sequential
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._figures import panels
from eigengame.experiments._protocol import rounded
from eigengame.experiments._turns import Turns, play_turns
from eigengame.game import theory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Alg. 1 against its own bounds"
PAPER = "Alg. pcagame_ascent_successive, Theorems ui_suff_conv and simp_conv_rate, Lemma ui_conv"

SPECTRUM = np.array([3.0, 2.0, 1.0, 0.5, 0.25])
K = 3
TOLERANCE = 0.1
"""The tolerance of the course that is drawn, and where M is scaled, in radians."""
PLAYERS = ("#1f5fa8", "#d9822b", "#3a923a")
"""A colour for each player."""


class Size(NamedTuple):
    """How much is played; `cap` ends turns that the printed rule would make longer."""

    tolerances: list[float]
    scales: list[float]
    trials: int
    rounds: int
    cap: int


FULL = Size([0.3, 0.1, 0.03, 0.01], [1.0, 3.0, 10.0, 30.0, 100.0, 1000.0], 10, 6000, 2000)
QUICK = Size([TOLERANCE], [1000.0], 3, 2500, 800)


def measure(run: Run) -> Results:
    """Return turns at several tolerances, and what both rules reach where M is scaled."""
    size = QUICK if run.quick else FULL
    results: Results = {
        "spectrum": SPECTRUM.tolist(),
        "size": size._asdict(),
        "tolerances": [],
        "scales": [],
    }
    for tolerance in size.tolerances:
        run.say(f"tolerance {tolerance:g}")
        turns = _play(1.0, tolerance, size)
        results["tolerances"].append(_against_bounds(turns, tolerance))
        if tolerance == TOLERANCE:
            results["course"] = _course(turns)
    for scale in size.scales:
        run.say(f"M times {scale:g}")
        free = _play(scale, TOLERANCE, size)
        literal = _play(
            scale, TOLERANCE, size, rule="literal", cap=size.cap, stop_on_gradient=False
        )
        reached = {"scale-free": _reached(free), "literal": _reached(literal)}
        results["scales"].append({"scale": scale} | reached)
    return results


def claims(results: Results) -> list[Claim]:
    """Hold the theorems against what players did."""
    seen = results["tolerances"]
    said = ", ".join(f"{one['tolerance']:g}" for one in seen)
    ratios = [np.asarray(one["bounds"]) / np.asarray(one["used"]) for one in seen]
    totals = [one["total bound"] / np.sum(one["used"], axis=1).max() for one in seen]
    wrong = [one["scale"] for one in results["scales"] if one["literal"]["angle"] > TOLERANCE]
    worst = results["scales"][-1]
    return [
        Claim(
            "Alg. 1 finds the top components to within theta_tol from any start.",
            f"Of {K} players from {results['size']['trials']} random starts, the worst ends at "
            + ", ".join(f"{np.max(one['angles']) / one['tolerance']:.2f}" for one in seen)
            + f" of theta_tol = {said}.",
            all(one["done"] and np.max(one["angles"]) <= one["tolerance"] for one in seen),
        ),
        Claim(
            "A player whose gradient is within rho_i is within pi rho_i / g_i + 8 c_i of its component.",
            "The largest angle is "
            + ", ".join(f"{np.max(one['share of the lemma']):.2g}" for one in seen)
            + f" of that, for theta_tol = {said}.",
            all(np.max(one["share of the lemma"]) <= 1 for one in seen),
        ),
        Claim(
            "No player needs more than t_i iterations (by the rule that does not depend on scale).",
            f"The bound is {_power(min(ratio.min() for ratio in ratios))} to "
            f"{_power(max(ratio.max() for ratio in ratios))} times what was used.",
            all(bool((ratio >= 1).all()) for ratio in ratios),
        ),
        Claim(
            "All players together need at most T_k iterations.",
            "T_k, without its unstated constant, is "
            + ", ".join(_power(total) for total in totals)
            + f" times what was used, for theta_tol = {said}.",
            all(total >= 1 for total in totals),
        ),
        Claim(
            "t_i as printed is enough iterations.",
            f"It is not for M times {', '.join(f'{scale:g}' for scale in wrong) or 'none of those tried'}: "
            f"times {worst['scale']:g} the players are given at most "
            f"{_turn_lengths(worst['literal']['used'], results['size']['cap'])} iterations, and one ends "
            f"{worst['literal']['angle']:.2f} radians off, where theta_tol is {TOLERANCE:g}.",
            not wrong,
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw one course, iterations against their bounds, and angles where M is scaled."""
    figure, axes = panels(3, width=4.0, height=3.4)
    _draw_course(axes[0, 0], results["course"])
    _draw_bounds(axes[0, 1], results["tolerances"])
    _draw_scales(axes[0, 2], results["scales"])
    return figure


def words(results: Results) -> str:
    """Say what was played, how pessimistic the bounds are, and what the printed rule does."""
    loose, tight = results["tolerances"][0], results["tolerances"][-1]
    used = [float(np.sum(one["used"], axis=1).mean()) for one in (loose, tight)]
    bounds = [float(np.sum(one["bounds"], axis=1).mean()) for one in (loose, tight)]
    last, cap = results["scales"][-1], results["size"]["cap"]
    return (
        f"Three players on diag({', '.join(f'{value:g}' for value in results['spectrum'])}), one after the other, "
        f"from {results['size']['trials']} random starts, with the theorem's step size 1/(2L) and in float64: what "
        "the theorem asks of the first player is below the rounding of float32. A turn ends when the gradient is "
        "within the theorem's threshold, and t_i is computed beside it. No turn could be played to its t_i "
        f"({_power(bounds[1])} iterations for all players at theta_tol = {tight['tolerance']:g}); "
        f"{used[1]:.0f} were enough. From theta_tol = {loose['tolerance']:g} to {tight['tolerance']:g} the bounds "
        f"grow {bounds[1] / bounds[0]:.0f} times, as the square of 1/theta_tol does, and what is used "
        f"{used[1] / used[0]:.2f} times: near an optimum the ascent is geometric, of which the general theory "
        "behind the proof makes no use. t_i as printed lacks a factor 4 L squared, and so depends on the scale "
        f"of the data. Played as printed (no stop on the gradient, turns cut at {cap} iterations), it gives "
        f"players at most {_turn_lengths(last['literal']['used'], cap)} iterations where M is {last['scale']:g} "
        f"times as large, and leaves one {last['literal']['angle']:.2f} radians off; the scale-free rule ends at "
        f"{last['scale-free']['angle']:.3f} there."
    )


def _play(scale: float, tolerance: float, size: Size, **options: Any) -> Turns:
    """Return the turns of every trial on the spectrum times a scale; no cap unless given."""
    values = scale * SPECTRUM
    options = {"cap": size.rounds} | options
    algorithm = Sequential(tuple(values[: K + 1]), theta_tol=tolerance, **options)
    return play_turns(algorithm, values, K, trials=size.trials, rounds=size.rounds)


def _against_bounds(turns: Turns, tolerance: float) -> Results:
    """Return angles and iterations beside what the theorem says of them."""
    c, rho = theory.thresholds(SPECTRUM, K, tolerance)
    smooth = theory.lipschitz(SPECTRUM, K)
    pairs = [[(r, norm) for r, norm in zip(rho, row, strict=True)] for row in turns.first]
    lemma = theory.angle_bound(rho, theory.gaps(SPECTRUM)[:K]) + 8 * c
    angles = turns.angles[:, -1]
    return {
        "tolerance": tolerance,
        "done": turns.done,
        "angles": rounded(angles),
        "share of the lemma": rounded((angles / lemma[None, :]).max(axis=0)),
        "used": turns.used.tolist(),
        "bounds": [[theory.scale_free_iterations(*pair, smooth) for pair in row] for row in pairs],
        "printed bounds": [[theory.literal_iterations(*pair) for pair in row] for row in pairs],
        "total bound": theory.total_iterations(SPECTRUM, K, tolerance),
    }


def _reached(turns: Turns) -> Results:
    """Return the largest angle in the end, and the iterations each player had, at most."""
    return {
        "done": turns.done,
        "angle": rounded([turns.angles[:, -1].max()])[0],
        "used": turns.used.max(axis=0).tolist(),
    }


def _course(turns: Turns) -> Results:
    """Return every player's angle in the first trial, while it lasts."""
    total = int(turns.used[0].sum())
    every = max(1, total // 150)
    return {
        "used": turns.used[0].tolist(),
        "iterations": list(range(1, total + 1, every)),
        "angles": rounded(turns.angles[0, :total:every]),
    }


def _draw_course(axes: Axes, course: Results) -> None:
    """Draw the angles of one trial, each player's own turn in bold."""
    x, angles = np.asarray(course["iterations"]), np.asarray(course["angles"])
    begins = np.concatenate([[0], np.cumsum(course["used"])])
    for i, colour in enumerate(PLAYERS):
        own = (x > begins[i]) & (x <= begins[i + 1])
        axes.semilogy(x, angles[:, i], color=colour, linewidth=0.8, alpha=0.6)
        axes.semilogy(x[own], angles[own, i], color=colour, linewidth=2.4, label=f"player {i + 1}")
        axes.axvline(begins[i + 1], color="#bbbbbb", linewidth=0.8)
    axes.axhline(TOLERANCE, color="#777777", linestyle="--", linewidth=0.8)
    axes.set(xlabel="iterations", ylabel="angle (radians)")
    axes.set_title(rf"turn by turn, $\theta_{{tol}}$ = {TOLERANCE:g}", fontsize=9)
    axes.legend(fontsize=7, frameon=False, loc="lower left")


def _draw_bounds(axes: Axes, tolerances: list[Results]) -> None:
    """Draw iterations used, and their bounds, against the tolerance."""
    x = [one["tolerance"] for one in tolerances]
    lines = {
        r"$T_k$": ([one["total bound"] for one in tolerances], "#b5382f", "^-"),
        r"sum of $t_i$, scale-free": (_totals(tolerances, "bounds"), "#7a5ab5", "s-"),
        r"sum of $t_i$, as printed": (_totals(tolerances, "printed bounds"), "#8c6d46", "D-"),
        "used": (_totals(tolerances, "used"), "#222222", "o-"),
    }
    for label, (y, colour, mark) in lines.items():
        axes.loglog(x, y, mark, color=colour, markersize=4, label=label)
    axes.set(xlabel=r"$\theta_{tol}$ (radians)", ylabel="iterations, all players", ylim=(10, None))
    axes.set_title("iterations and their bounds", fontsize=9)
    axes.legend(fontsize=7, frameon=False, loc="center right", bbox_to_anchor=(1, 0.38))


def _draw_scales(axes: Axes, scales: list[Results]) -> None:
    """Draw the largest angle in the end against the scale of M."""
    x = [one["scale"] for one in scales]
    for rule, label, colour in (
        ("literal", r"$t_i$ as printed", "#8c6d46"),
        ("scale-free", r"scale-free $t_i$", "#7a5ab5"),
    ):
        angles = [one[rule]["angle"] for one in scales]
        axes.loglog(x, angles, "o-", color=colour, markersize=4, label=label)
    axes.axhline(TOLERANCE, color="#777777", linestyle="--", linewidth=0.8)
    axes.text(x[0], 1.15 * TOLERANCE, r"$\theta_{tol}$", fontsize=8, color="#777777")
    axes.set(xlabel="M multiplied by", ylabel="largest angle (radians)")
    axes.set_title("the same data, scaled", fontsize=9)
    axes.legend(fontsize=7, frameon=False)


def _totals(tolerances: list[Results], kind: str) -> list[float]:
    """Return iterations summed over players, in the mean over trials."""
    return [float(np.sum(one[kind], axis=1).mean()) for one in tolerances]


def _turn_lengths(used: list[int], cap: int) -> str:
    """Return iterations as a list in words; those at the cap would be longer."""
    said = [f"{cap} (cut)" if one >= cap else str(one) for one in used]
    return f"{', '.join(said[:-1])} and {said[-1]}"


def _power(value: float) -> str:
    return f"{value:.0f}" if value < 1e4 else f"10^{math.log10(value):.1f}"
