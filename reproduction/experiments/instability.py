"""Steps near the optimum with and without the projection, on a circle and in the game.

On a circle a player at some angle from its optimum makes one step along its gradient (EigenGame) or along the
gradient's projection on the tangent (EigenGame^R), and is normalised. Then fifty players of the exponential
spectrum start near the equilibrium, which shows the step sizes at which they stay there.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.algorithms import Alpha
from eigengame.game import SymmetricRows, sphere
from eigengame.game.utilities import gradients
from reproduction.base import Claim, Results, Run, Verdict, holds_if
from reproduction.curves import rounded
from reproduction.experiments.instability_figure import draw_steps as draw
from reproduction.protocol import GRID, Protocol
from reproduction.trials import Family, components, eigengame, play_trials

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "Steps near the optimum, with and without the projection"
PAPER = "fig:instability, appendix To project or not to project?"

D = 50
CIRCLE = (1000.0, 1.0)
"""Eigenvalues on the circle: the largest and the smallest of the spectrum."""
STEPS = (1e-4, 1e-3, 1e-2)
"""Step sizes on the circle: two of the paper's grid, and ten times its largest."""
MARGIN = 2.0
"""Step sizes up to this many times the paper's largest are looked at."""
LARGER = 2.0
"""Steps are much larger from this factor on."""
BESIDE = 0.01
"""Initial distance of players from the equilibrium, in radians."""

ALGORITHMS: dict[str, Family] = {"EigenGame": eigengame, "EigenGame^R": Alpha}

PROTOCOL = Protocol(
    # `points` angles on the circle, and `steps` for the fifty players.
    full={
        "points": 89,
        "steps": (*GRID[::-1], 3e-4, 7e-4, 1.1e-3, 1.3e-3, 1.6e-3, 2e-3, 3e-3, 1e-2, 1e-1),
        "updates": 1000,
        "trials": 10,
    },
    quick={"points": 9, "steps": (1e-3, 1e-2), "updates": 60, "trials": 1},
)


def measure(run: Run) -> Results:
    """Measure single steps on the circle, and the distance of fifty players from the equilibrium."""
    size = PROTOCOL.size(run.quick)
    run.progress("single steps on the circle")
    angles = np.linspace(1, 89, size.points)
    moved = {name: _moved(family, angles) for name, family in ALGORITHMS.items()}
    return {
        "size": vars(size),
        "circle": list(CIRCLE),
        "beside": float(np.degrees(BESIDE)),
        "angles": rounded(angles),
        "steps": list(STEPS),
        "moved": {name: rounded(np.degrees(turned), 6) for name, turned in moved.items()},
        # A step along the tangent rotates by the arctangent of its length: this is the ratio of the rates.
        "share": rounded(np.tan(moved["EigenGame"]) / np.tan(moved["EigenGame^R"])),
        "picture": _picture(angle=20.0, step=1.5),
        "spectrum": _jitters(run, size),
    }


def claims(results: Results) -> list[Claim]:
    """Compare the appendix with the steps."""
    plain, projected = (np.asarray(results["moved"][name]) for name in ALGORITHMS)
    ratios, share = projected / plain, np.asarray(results["share"])
    angles = np.asarray(results["angles"])[None, :]
    farther, passed = (projected > 2 * angles).any(axis=1), (plain > angles).any()
    bounds = _bounds(results)
    return [
        Claim(
            "The projected gradient can make much larger steps on the sphere.",
            "A step with the projection rotates a player by "
            + _each(results, [f"{row.min():.2f} to {row.max():.2f}" for row in ratios])
            + f" times as much as one without (holds if never less, and at least {LARGER:g} times at some angle "
            "of a step size of the paper's grid).",
            holds_if(bool((ratios >= 1).all() and (ratios[_on_grid(results)] >= LARGER).any())),
            "one player on a circle",
        ),
        Claim(
            "Near the optimum a projected step can end farther from it than it began.",
            "Step sizes at which this happens with the projection: "
            f"{' and '.join(_size(step) for step in np.asarray(results['steps'])[farther]) or 'none'}; without, "
            f"{'some step passes' if passed else 'no step even passes'} the optimum, at any angle or step size.",
            holds_if(bool(farther.any() and not passed)),
            f"one player on a circle, step sizes up to {_size(max(results['steps']))}; the paper's grid ends at "
            f"{_size(max(GRID))}",
        ),
        Claim(
            "Leaving the projection out is like a learning rate that decays near the equilibrium.",
            "Share of the learning rate left at a right angle and at the optimum: "
            + _each(results, [f"{row[-1]:.3f} and {row[0]:.3f}" for row in share])
            + " (holds if it never increases towards the optimum, and is halved at one step size).",
            holds_if(
                bool((np.diff(share, axis=1) >= 0).all() and (share[:, 0] < share[:, -1] / 2).any())
            ),
            "one player on a circle",
        ),
        Claim(
            "Leaving the projection out improves stability.",
            "Fifty players near the equilibrium of the exponential spectrum stay there up to a step size of "
            f"{_size(bounds['EigenGame'])} without the projection, of at most "
            f"{_size(max(results['spectrum']['steps']))} tried; with it up to {_size(bounds['EigenGame^R'])}.",
            holds_if(bounds["EigenGame"] > bounds["EigenGame^R"]),
            "50 players at the equilibrium, step sizes of Alg. 2",
        ),
        _explanation(results),
    ]


def _explanation(results: Results) -> Claim:
    """Test whether the two games differ near the equilibrium at the paper's step sizes.

    If they do only slightly above its grid, the verdict depends on the convention of the step sizes.
    """
    apart, beyond = (_apart(results, largest) for largest in (max(GRID), MARGIN * max(GRID)))
    high, low = results["circle"]
    if apart > results["beside"]:
        verdict = Verdict.HOLDS
    elif beyond > results["beside"]:
        verdict = Verdict.NOT_COMPARABLE
    else:
        verdict = Verdict.DOES_NOT_HOLD
    return Claim(
        "Instability near the equilibrium may be why EigenGame does better than EigenGame^R on the exponential "
        "spectrum.",
        f"The two end at most {apart:.2g} degrees apart at step sizes up to the paper's largest, "
        f"{_size(max(GRID))}, and {beyond:.2g} up to {MARGIN:g} times it (root mean square, of all players or of "
        f"the first). The projected game is stable up to 1/gap, which is {1 / (high - low) / max(GRID):.3f} times "
        f"the paper's largest (holds above the initial {results['beside']:.2f} degrees within the grid; undecided "
        "if only beyond it).",
        verdict,
        "50 players at the equilibrium, step sizes of Alg. 2; the paper does not state its convention",
    )


def summary(results: Results) -> str:
    """Describe the decay of the rate, the largest stable steps, and the difference within the paper's grid."""
    bounds, (high, low) = _bounds(results), results["circle"]
    edge, worst = 1 / (high - low), results["spectrum"]["EigenGame^R"]["all"][-1]
    side = "below" if max(GRID) < edge else "not below"
    beyond = "above" if 10 * max(GRID) > edge else "not above"
    return (
        f"On a circle with eigenvalues {high:g} and {low:g}, a step without the projection equals a step with it "
        "at a learning rate of alpha / (1 + 2 alpha u), where u is the player's utility: a step of power "
        f"iteration. {_decay(results)} With the projection a step rotates by arctan(alpha gap sin(2 angle)), so "
        f"that the optimum repels from alpha = 1/gap = 1/{high - low:g} on. Fifty players of the exponential "
        f"spectrum that start {results['beside']:.2f} degrees from the equilibrium stay there for "
        f"{results['size']['updates']} updates up to a step size of {_size(bounds['EigenGame^R'])} with the "
        f"projection, and are {worst:.0f} degrees off (root mean square) at "
        f"{_size(max(results['spectrum']['steps']))}; without it they stay up to {_size(bounds['EigenGame'])}. The "
        f"paper's largest step size, {_size(max(GRID))}, is {side} 1/gap; ten times it, as in its dotted lines, is "
        f"{beyond}. {_within_grid(results)}"
    )


def _decay(results: Results) -> str:
    """Describe how much the learning rate decays towards the optimum, at each step size."""
    shares = [(row[-1], row[0]) for row in results["share"]]
    said = _each(results, [f"{far:.2f} and {near:.2f}" for far, near in shares])
    decays = [
        _size(step)
        for step, (far, near) in zip(results["steps"], shares, strict=True)
        if near < far / 2
    ]
    return (
        f"At a right angle and at the optimum, the share of the rate left is {said}: it is halved towards the "
        f"optimum at {' and '.join(decays) if decays else 'no step size'}."
    )


def _within_grid(results: Results) -> str:
    """Describe whether the two games differ at the paper's step sizes."""
    apart = _apart(results, max(GRID))
    if apart > results["beside"]:
        return (
            f"Within the paper's grid the two end up to {apart:.2g} degrees apart, so that instability near the "
            "equilibrium can explain a difference between them."
        )
    return (
        f"Within the paper's grid the two end at most {apart:.2g} degrees apart: instability near the equilibrium "
        "does not explain a difference between them there."
    )


def reading(results: Results) -> str:
    """Describe what counts as staying near the equilibrium."""
    return (
        "The paper's figure is a sketch without numbers. Players stay near the equilibrium if their root mean "
        "square angle in the last fifth of the run is at most the initial one. Verdicts on the paper's runs assume "
        "that its step sizes are in the convention of Alg. 2, with the factor 2."
    )


def _bounds(results: Results) -> dict[str, float]:
    """Return the largest stable step size of each algorithm."""
    return {
        name: largest_stable(results["spectrum"], name, results["beside"]) for name in ALGORITHMS
    }


def largest_stable(spectrum: Results, name: str, within: float) -> float:
    """Return the largest step size up to which players stay within an angle; 0 for none."""
    largest = 0.0
    for step, angle in zip(spectrum["steps"], spectrum[name]["all"], strict=True):
        if angle > within:
            break
        largest = step
    return largest


def _apart(results: Results, largest: float) -> float:
    """Return the largest difference between the angles of the two games at step sizes up to one."""
    seen = results["spectrum"]
    # Steps are decimal fractions with few digits: the factor is for rounding only.
    places = [i for i, step in enumerate(seen["steps"]) if step <= largest * (1 + 1e-9)]
    return max(
        abs(seen["EigenGame"][who][i] - seen["EigenGame^R"][who][i])
        for who in ("all", "first")
        for i in places
    )


def _on_grid(results: Results) -> np.ndarray:
    """Return which step sizes on the circle are in the paper's grid."""
    return np.asarray([step in GRID for step in results["steps"]])


def _each(results: Results, said: list[str]) -> str:
    """Format one entry for each step size of the circle."""
    pairs = zip(said, results["steps"], strict=True)
    return ", ".join(f"{one} (at {_size(step)})" for one, step in pairs)


def _size(step: float) -> str:
    """Format a step size: 1e-3 and not 0.001."""
    return f"{step:.1e}".replace(".0e", "e").replace("e-0", "e-")


def _moved(family: Family, angles: np.ndarray) -> np.ndarray:
    """Return the rotation of a player towards the optimum by one step, in radians, shape (steps, points)."""
    theta = jnp.radians(jnp.asarray(angles, jnp.float32))
    players = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)[:, None, :]
    rows = SymmetricRows(jnp.diag(jnp.asarray(CIRCLE, jnp.float32)))
    turned = []
    for step in STEPS:
        landed = play_trials(family, step, players, rows, None, components, updates=1, every=1)
        x, y = np.moveaxis(landed[:, 0, 0].astype(np.float64), -1, 0)
        turned.append(np.radians(angles) - np.arctan2(y, x))
    return np.stack(turned)


def _picture(angle: float, step: float) -> Results:
    """Return the vectors of one step on diag(1, 0); the optimum is the first axis."""
    rows = SymmetricRows(jnp.diag(jnp.asarray([1.0, 0.0], jnp.float32)))
    theta = np.radians(angle)
    player = jnp.asarray([[np.cos(theta), np.sin(theta)]], jnp.float32)
    gradient = step * gradients(rows, player)
    along = {"EigenGame": gradient, "EigenGame^R": sphere.project_tangent(player, gradient)}
    return {
        "player": rounded(player[0]),
        "steps": {name: rounded(vector[0]) for name, vector in along.items()},
        "landed": {
            name: rounded(sphere.retract(player + vector)[0]) for name, vector in along.items()
        },
    }


def _jitters(run: Run, size: Any) -> Results:
    """Return the root mean square angles of fifty players in the last fifth of a run, in degrees."""
    rows = SymmetricRows(jnp.diag(jnp.asarray(testing.exponential(D), jnp.float32)))
    truth = jnp.eye(D, dtype=jnp.float32)
    aside = np.random.default_rng(0).normal(size=(size.trials, D, D))
    aside *= BESIDE / np.linalg.norm(aside, axis=-1, keepdims=True)
    players = sphere.retract(jnp.asarray(np.eye(D)[None] + aside, jnp.float32))
    steps, seen = sorted(size.steps), {}
    for name, family in ALGORITHMS.items():
        run.progress(f"fifty players near the equilibrium: {name}")
        kept: dict[str, list[float]] = {"all": [], "first": []}
        for step in steps:
            found = play_trials(
                family,
                step,
                players,
                rows,
                truth,
                metrics.angular_error,
                updates=size.updates,
                every=10,
            )
            late = np.degrees(found[:, -max(1, found.shape[1] // 5) :].astype(np.float64))
            kept["all"].append(rounded(np.sqrt((late**2).mean())))
            kept["first"].append(rounded(np.sqrt((late[..., 0] ** 2).mean())))
        seen[name] = kept
    return {"steps": steps} | seen
