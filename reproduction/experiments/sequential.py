"""Alg. 1 compared with its own bounds: final angles, iterations, and the rule for t_i on scaled data.

Players learn one after the other. A turn ends when the Riemannian gradient is within min(|first|/2, rho_i), which
t_i iterations are meant to ensure. t_i is computed from the same first gradient, and compared.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eigengame.algorithms import Sequential
from eigengame.game import theory
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import rounded
from reproduction.experiments.sequential_figure import TOLERANCE, K, totals
from reproduction.experiments.sequential_figure import draw_turns as draw
from reproduction.experiments.sequential_turns import Turns, play_turns
from reproduction.protocol import Protocol

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "Alg. 1 against its own bounds"
PAPER = "Alg. pcagame_ascent_successive, Theorems ui_suff_conv and simp_conv_rate, Lemma ui_conv"

SPECTRUM = np.array([3.0, 2.0, 1.0, 0.5, 0.25])
ENOUGH = "t_i iterations are enough for every player."
QUADRATIC = 0.25
"""Growth is quadratic in 1/tolerance if its exponent is 2 within this."""


PROTOCOL = Protocol(
    # `cap` limits turns that would be longer by the printed rule.
    full={
        "tolerances": [0.3, 0.1, 0.03, 0.01],
        "scales": [1.0, 3.0, 10.0, 30.0, 100.0, 1000.0],
        "trials": 10,
        "rounds": 6000,
        "cap": 2000,
    },
    quick={
        "tolerances": [TOLERANCE],
        "scales": [1000.0],
        "trials": 3,
        "rounds": 2500,
        "cap": 800,
    },
)


def measure(run: Run) -> Results:
    """Run turns at several tolerances, and with both rules on scaled data."""
    size = PROTOCOL.size(run.quick)
    results: Results = {
        "spectrum": SPECTRUM.tolist(),
        "size": vars(size),
        "tolerances": [],
        "scales": [],
    }
    for tolerance in size.tolerances:
        run.progress(f"tolerance {tolerance:g}")
        turns = _play(1.0, tolerance, size)
        results["tolerances"].append(_against_bounds(turns, tolerance))
        if tolerance == TOLERANCE:
            results["course"] = _course(turns)
    for scale in size.scales:
        run.progress(f"M times {scale:g}")
        free = _play(scale, TOLERANCE, size)
        literal = _play(
            scale, TOLERANCE, size, rule="literal", cap=size.cap, stop_on_gradient=False
        )
        reached = {"scale-free": _reached(free), "literal": _reached(literal)}
        results["scales"].append({"scale": scale} | reached)
    return results


def claims(results: Results) -> list[Claim]:
    """Compare the theorems with the runs."""
    seen = results["tolerances"]
    said = ", ".join(f"{one['tolerance']:g}" for one in seen)
    ratios = [np.asarray(one["bounds"]) / np.asarray(one["used"]) for one in seen]
    totals = [one["total bound"] / np.sum(one["used"], axis=1).max() for one in seen]
    wrong = [one["scale"] for one in results["scales"] if one["literal"]["angle"] > TOLERANCE]
    worst = results["scales"][-1]
    return [
        Claim(
            "Alg. 1 finds the top components to within theta_tol from any start.",
            f"Largest final angle of {K} players from {results['size']['trials']} random starts, in units of "
            "theta_tol: "
            + ", ".join(f"{np.max(one['angles']) / one['tolerance']:.2f}" for one in seen)
            + f", for theta_tol = {said} (holds up to 1, with all turns finished).",
            holds_if(
                all(one["done"] and np.max(one["angles"]) <= one["tolerance"] for one in seen)
            ),
            "turns end at the gradient threshold of the theorem, random starts on one spectrum",
        ),
        Claim(
            "A player whose gradient is within rho_i is within pi rho_i / g_i + 8 c_i of its component.",
            "Largest angle, in units of that bound: "
            + ", ".join(f"{np.max(one['share of the lemma']):.2g}" for one in seen)
            + f", for theta_tol = {said} (holds up to 1).",
            holds_if(all(np.max(one["share of the lemma"]) <= 1 for one in seen)),
            "turns end at the gradient threshold of the theorem, random starts on one spectrum",
        ),
        Claim(
            ENOUGH,
            f"t_i is {_power(min(ratio.min() for ratio in ratios))} to "
            f"{_power(max(ratio.max() for ratio in ratios))} times the iterations used (holds from 1 on).",
            holds_if(all(bool((ratio >= 1).all()) for ratio in ratios)),
            "t_i with 5 L^2, as the theorem it rests on implies",
        ),
        Claim(
            ENOUGH,
            f"Scales of M at which a player ends above theta_tol = {TOLERANCE:g}: "
            f"{', '.join(f'{scale:g}' for scale in wrong) or 'none'}. At {worst['scale']:g} the players have at "
            f"most {_turn_lengths(worst['literal']['used'], results['size']['cap'])} iterations, and the largest "
            f"final angle is {worst['literal']['angle']:.2f} radians.",
            holds_if(not wrong),
            "t_i with 5/4, as printed",
        ),
        Claim(
            "All players together need at most T_k iterations.",
            "T_k, without its unstated constant, is "
            + ", ".join(_power(total) for total in totals)
            + f" times the iterations used, for theta_tol = {said} (holds from 1 on).",
            holds_if(all(total >= 1 for total in totals)),
            "the unstated constant of T_k taken as 1, random starts",
        ),
    ]


def summary(results: Results) -> str:
    """Describe how loose the bounds are, how they grow, and the printed rule on scaled data."""
    return f"{_looseness(results)} {_growth(results)} {_printed_rule(results)}"


def _looseness(results: Results) -> str:
    """Compare the iterations used with the sum of t_i at the smallest tolerance."""
    tight = results["tolerances"][-1]
    (used,), (bound,) = (totals([tight], kind) for kind in ("used", "bounds"))
    done = "ended their turns" if tight["done"] else "did not all end their turns"
    return (
        f"At theta_tol = {tight['tolerance']:g} the players {done} after {used:.0f} iterations on average, where "
        f"the sum of t_i is {_power(bound)}."
    )


def _growth(results: Results) -> str:
    """Compare the growth of the bounds with that of the iterations, from the largest to the smallest tolerance."""
    ends = [results["tolerances"][0], results["tolerances"][-1]]
    if ends[0] is ends[1]:
        return "One tolerance does not show how they grow."
    ratio = ends[0]["tolerance"] / ends[1]["tolerance"]
    used, bounds = (
        after / before for before, after in (totals(ends, k) for k in ("used", "bounds"))
    )
    exponents = {
        kind: math.log(grown) / math.log(ratio) for kind, grown in (("b", bounds), ("u", used))
    }
    quadratic = "quadratic" if abs(exponents["b"] - 2) <= QUADRATIC else "not quadratic"
    slower = "faster" if used > bounds else "slower"
    return (
        f"From theta_tol = {ends[0]['tolerance']:g} to {ends[1]['tolerance']:g} the bounds grow by a factor of "
        f"{bounds:.0f}, which is {quadratic} in 1/theta_tol (exponent {exponents['b']:.2f}), and the iterations "
        f"used by a factor of {used:.2f}: {slower} than the bounds (exponent {exponents['u']:.2f})."
    )


def _printed_rule(results: Results) -> str:
    """Compare the printed and the scale-free rule at the largest scale."""
    last, cap = results["scales"][-1], results["size"]["cap"]
    angles = {rule: last[rule]["angle"] for rule in ("literal", "scale-free")}
    meets = {rule: "meets" if angle <= TOLERANCE else "misses" for rule, angle in angles.items()}
    return (
        "t_i as printed lacks a factor 4 L^2 and depends on the scale of the data. On M times "
        f"{last['scale']:g} it allows at most {_turn_lengths(last['literal']['used'], cap)} iterations and "
        f"{meets['literal']} the tolerance of {TOLERANCE:g} with a largest final angle of {angles['literal']:.2f} "
        f"radians; the scale-free rule {meets['scale-free']} it with {angles['scale-free']:.3f}."
    )


def reading(results: Results) -> str:
    """Describe how turns end."""
    spectrum, cap = np.asarray(results["spectrum"]), results["size"]["cap"]
    tolerance = results["tolerances"][-1]["tolerance"]
    rho = float(theory.thresholds(spectrum, K, tolerance).rho[0])
    rounding = float(np.finfo(np.float32).eps * theory.lipschitz(spectrum, K))
    return (
        f"Three players on diag({', '.join(f'{value:g}' for value in spectrum)}), one after the other, from "
        f"{results['size']['trials']} random starts, with the theorem's step size 1/(2L). Float64, since at "
        f"theta_tol = {tolerance:g} the threshold of the first player is rho_1 = {rho:.1g}, and rounding in "
        f"float32 changes gradients by about {rounding:.0g}. A turn ends when the gradient "
        "is within the threshold of the theorem; the printed rule is run without this stop, with turns "
        f"of at most {cap} iterations. The constant of T_k is not stated in the paper and taken as 1."
    )


def _play(scale: float, tolerance: float, size: Any, **options: Any) -> Turns:
    """Run all trials on the spectrum times a scale; no cap by default."""
    values = scale * SPECTRUM
    options = {"cap": size.rounds} | options
    algorithm = Sequential(tuple(values[: K + 1]), theta_tol=tolerance, **options)
    return play_turns(algorithm, values, K, trials=size.trials, rounds=size.rounds)


def _against_bounds(turns: Turns, tolerance: float) -> Results:
    """Return angles and iterations, with the bounds of the theorem."""
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
    """Return the largest final angle, and the most iterations of each player."""
    return {
        "done": turns.done,
        "angle": rounded(turns.angles[:, -1].max()),
        "used": turns.used.max(axis=0).tolist(),
    }


def _course(turns: Turns) -> Results:
    """Return the angles of all players in the first trial, until its last turn ends."""
    total = int(turns.used[0].sum())
    every = max(1, total // 150)
    return {
        "used": turns.used[0].tolist(),
        "iterations": list(range(1, total + 1, every)),
        "angles": rounded(turns.angles[0, :total:every]),
    }


def _turn_lengths(used: list[int], cap: int) -> str:
    """Format iterations as a list; those at the cap would be longer."""
    said = [f"{cap} (cut)" if one >= cap else str(one) for one in used]
    return f"{', '.join(said[:-1])} and {said[-1]}"


def _power(value: float) -> str:
    return f"{value:.0f}" if value < 1e4 else f"10^{math.log10(value):.1f}"
