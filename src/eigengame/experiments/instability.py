"""To project or not to project: steps near the optimum, by the geometry and in the game.

On a circle, a player at an angle from its optimum moves once, along its gradient (EigenGame) or along the
gradient's projection on the tangent (EigenGame^R), and is brought back to the circle. Then all fifty players of
the exponential spectrum, set down beside the equilibrium, show at which step sizes they stay there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.algorithms import Alpha
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._families import eigengame
from eigengame.experiments._protocol import GRID, rounded
from eigengame.experiments._steps_figure import draw_steps
from eigengame.experiments._trials import Family, play_trials
from eigengame.game import SymmetricRows, sphere
from eigengame.game.utilities import gradients

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Steps near the optimum, with and without the projection"
PAPER = "fig:instability, appendix To project or not to project?"

D = 50
CIRCLE = (1000.0, 1.0)
"""The circle's eigenvalues: the largest and the smallest of the spectrum."""
STEPS = (1e-4, 1e-3, 1e-2)
"""Step sizes on the circle: two of the paper's grid, and ten times its largest."""
BESIDE = 0.01
"""How far from the equilibrium players are set down, in radians."""


PLAYED: dict[str, Family] = {"EigenGame": eigengame, "EigenGame^R": Alpha}


class Size(NamedTuple):
    """How much is played; an angle for each of `points` on the circle, `steps` sizes for the fifty."""

    points: int
    steps: tuple[float, ...]
    updates: int
    trials: int


FULL = Size(
    points=89,
    steps=(*GRID[::-1], 3e-4, 7e-4, 1.1e-3, 1.3e-3, 1.6e-3, 2e-3, 3e-3, 1e-2, 1e-1),
    updates=1000,
    trials=10,
)
QUICK = Size(points=9, steps=(1e-3, 1e-2), updates=60, trials=1)


def measure(run: Run) -> Results:
    """Return single steps on the circle, and how far fifty players are from the equilibrium they began at."""
    size = QUICK if run.quick else FULL
    run.say("single steps on the circle")
    angles = np.linspace(1, 89, size.points)
    moved = {name: _moved(family, angles) for name, family in PLAYED.items()}
    return {
        "size": size._asdict() | {"steps": list(size.steps)},
        "circle": list(CIRCLE),
        "beside": float(np.degrees(BESIDE)),
        "angles": rounded(angles),
        "steps": list(STEPS),
        "moved": {name: rounded(np.degrees(turned), 6) for name, turned in moved.items()},
        # A step along the tangent turns by the arctangent of its length: their ratio is that of the rates.
        "share": rounded(np.tan(moved["EigenGame"]) / np.tan(moved["EigenGame^R"])),
        "picture": _picture(angle=20.0, step=1.5),
        "spectrum": _jitters(run, size),
    }


def claims(results: Results) -> list[Claim]:
    """Hold the appendix against the steps."""
    plain, projected = (np.asarray(results["moved"][name]) for name in PLAYED)
    ratios, share = projected / plain, np.asarray(results["share"])
    angles = np.asarray(results["angles"])[None, :]
    farther, passed = (projected > 2 * angles).any(axis=1), (plain > angles).any()
    bounds = {name: largest_stable(results["spectrum"], name, results["beside"]) for name in PLAYED}
    apart = _apart_on_the_grid(results)
    return [
        Claim(
            "The projected gradient makes larger steps on the sphere.",
            "A step with the projection turns a player by "
            + _each(results, [f"{row.min():.2f} to {row.max():.2f}" for row in ratios])
            + " times as much as one without.",
            bool((ratios >= 1).all()),
        ),
        Claim(
            "Near the optimum a projected step can end farther from it than it began.",
            "With the projection steps do so at a step size of "
            f"{' and '.join(_size(step) for step in np.asarray(results['steps'])[farther]) or 'none'}; without, "
            f"{'some step passes' if passed else 'no step even passes'} the optimum, at any angle or step size.",
            bool(farther.any() and not passed),
        ),
        Claim(
            "Leaving the projection out is like a learning rate that decays near the equilibrium.",
            "Of the learning rate there is left, at a right angle and at the optimum, "
            + _each(results, [f"{row[-1]:.3f} and {row[0]:.3f}" for row in share])
            + ".",
            bool((np.diff(share, axis=1) >= 0).all() and (share[:, 0] < share[:, -1] / 2).any()),
        ),
        Claim(
            "Leaving it out improves stability.",
            "Fifty players set down beside the equilibrium of the exponential spectrum stay there up to a step "
            f"size of {_size(bounds['EigenGame'])}, the largest tried being "
            f"{_size(max(results['spectrum']['steps']))}; with the projection up to "
            f"{_size(bounds['EigenGame^R'])}.",
            bounds["EigenGame"] > bounds["EigenGame^R"],
        ),
        Claim(
            "Instability near the equilibrium may be why EigenGame does better than EigenGame^R on the "
            "exponential spectrum.",
            f"At the step sizes of the paper's grid the two end at most {apart:.2g} degrees apart (root "
            "mean square, of all players or of the first).",
            apart > results["beside"],
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the geometry, steps on the circle, what is left of the learning rate, and the fifty players."""
    return draw_steps(results)


def words(results: Results) -> str:
    """Say what a step does, and how far the paper's explanation reaches."""
    bounds = {name: largest_stable(results["spectrum"], name, results["beside"]) for name in PLAYED}
    high, low = results["circle"]
    near, far = results["share"][1][0], results["share"][1][-1]
    worst = results["spectrum"]["EigenGame^R"]["all"][-1]
    return (
        f"On a circle with eigenvalues {high:g} and {low:g}, a step without the projection is a step with it at a "
        "learning rate alpha divided by 1 + 2 alpha u, where u is the player's utility: one of power iteration, "
        f"which cannot pass the optimum. At alpha = {_size(results['steps'][1])}, {far:.2f} of the rate is left at "
        f"a right angle to the optimum and {near:.2f} at it. So the decay is real, but it is no schedule: it is "
        "never less than that, and where alpha times the eigenvalue is small there is none. With the projection a "
        "step turns by arctan(alpha gap sin(2 angle)), and from alpha = 1/gap on the optimum repels. All fifty "
        f"players of the exponential spectrum were set down {results['beside']:.2f} degrees beside the "
        f"equilibrium, and left to play {results['size']['updates']} updates. The edge is at 1/{high - low:g}: "
        f"with the projection they stay up to {_size(bounds['EigenGame^R'])}, and are {worst:.0f} degrees off "
        f"(root mean square) at {_size(max(results['spectrum']['steps']))}; without it they stay up to "
        f"{_size(bounds['EigenGame'])}. The paper's largest step size, 1e-3, is just below the edge; ten times it, "
        "as its dotted lines may be, is beyond. Within its grid the two games end at most "
        f"{_apart_on_the_grid(results):.2g} degrees apart, so that what separates them in a figure may well lie on "
        "the way to the equilibrium."
    )


def largest_stable(spectrum: Results, name: str, within: float) -> float:
    """Return the largest step size up to which all players stay within an angle; 0 for none."""
    largest = 0.0
    for step, angle in zip(spectrum["steps"], spectrum[name]["all"], strict=True):
        if angle > within:
            break
        largest = step
    return largest


def _apart_on_the_grid(results: Results) -> float:
    """Return how far the two games' angles are apart, at most, at the paper's step sizes."""
    seen = results["spectrum"]
    places = [i for i, step in enumerate(seen["steps"]) if step in GRID]
    return max(
        abs(seen["EigenGame"][who][i] - seen["EigenGame^R"][who][i])
        for who in ("all", "first")
        for i in places
    )


def _each(results: Results, said: list[str]) -> str:
    """Return a finding for each step size of the circle."""
    pairs = zip(said, results["steps"], strict=True)
    return ", ".join(f"{one} (at {_size(step)})" for one, step in pairs)


def _size(step: float) -> str:
    """Return a step size as people write it: 1e-3 and not 0.001."""
    return f"{step:.1e}".replace(".0e", "e").replace("e-0", "e-")


def _moved(family: Family, angles: np.ndarray) -> np.ndarray:
    """Return the radians that one step turns a player by, towards the optimum, shape (steps, points)."""
    theta = jnp.radians(jnp.asarray(angles, jnp.float32))
    players = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)[:, None, :]
    rows = SymmetricRows(jnp.diag(jnp.asarray(CIRCLE, jnp.float32)))
    turned = []
    for step in STEPS:
        landed = play_trials(family, step, players, rows, None, _as_is, updates=1, every=1)
        x, y = np.moveaxis(landed[:, 0, 0].astype(np.float64), -1, 0)
        turned.append(np.radians(angles) - np.arctan2(y, x))
    return np.stack(turned)


def _as_is(components: jax.Array, _: Any) -> jax.Array:
    return components


def _picture(angle: float, step: float) -> Results:
    """Return the vectors of one step on diag(1, 0), where the optimum is the first axis."""
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


def _jitters(run: Run, size: Size) -> Results:
    """Return the angles of fifty players in the last fifth of a run, root mean square, in degrees."""
    rows = SymmetricRows(jnp.diag(jnp.asarray(testing.exponential(D), jnp.float32)))
    truth = jnp.eye(D, dtype=jnp.float32)
    aside = np.random.default_rng(0).normal(size=(size.trials, D, D))
    aside *= BESIDE / np.linalg.norm(aside, axis=-1, keepdims=True)
    players = sphere.retract(jnp.asarray(np.eye(D)[None] + aside, jnp.float32))
    steps, seen = sorted(size.steps), {}
    for name, family in PLAYED.items():
        run.say(f"fifty players beside the equilibrium: {name}")
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
            kept["all"] += rounded([np.sqrt((late**2).mean())])
            kept["first"] += rounded([np.sqrt((late[..., 0] ** 2).mean())])
        seen[name] = kept
    return {"steps": steps} | seen
