"""One Riemannian step on the 2-sphere: the gradient, its tangential part, the step and the retraction.

The second of two players on diag(3, 2, 1) makes steps of many lengths from random positions. Each step is an update
of `Alpha`. It is compared with the step in the tangent plane, with the great circle in the same direction (the
exponential map), and with the point of the sphere that is nearest to the step.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from eigengame.algorithms import Alpha
from eigengame.game import SymmetricRows, sphere
from eigengame.game.utilities import gradients, utilities
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import log_slope, rounded
from reproduction.experiments.riemann_figure import draw_step as draw
from reproduction.protocol import Protocol
from reproduction.trials import starts

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "One Riemannian step"
PAPER = "fig:riemann, Sec. Method (A sequential algorithm)"

EIGENVALUES = (3.0, 2.0, 1.0)
PLAYERS = ((0.98, 0.1, 0.15), (0.82, 0.42, 0.38))
"""Players of the drawing, scaled to length 1; the second one moves."""
DRAWN = 0.6
"""Step size of the drawing: large, so that its parts can be told apart."""
HALF = 1e-4
"""Distance of finite differences along great circles, in radians."""
EXACT = 1e-6
"""Largest difference of quantities that should be equal; finite differences are not more exact."""
ORDER = 0.1
"""An order is measured if the slope on logarithmic axes is a whole number within this."""
SHORT = 0.1
"""Slopes are measured for steps up to this length; longer steps are not in the limit."""
LONG = np.pi / 2
"""Length of the longest step that is compared with the nearest point: a quarter turn of the great circle."""
APART = 1.0
"""Degrees from which two points are different."""

PROTOCOL = Protocol(
    # `points` step lengths, and `searched` positions for which the nearest point is found by search.
    full={"trials": 200, "points": 29, "searched": 40},
    quick={"trials": 10, "points": 9, "searched": 3},
)


def measure(run: Run) -> Results:
    """Measure steps of all lengths from random positions, and one step for the drawing."""
    size = PROTOCOL.size(run.quick)
    # In float64: short steps and great circles differ by the cube of their length.
    with jax.enable_x64(True):
        rows = SymmetricRows(jnp.diag(jnp.asarray(EIGENVALUES, jnp.float64)))
        players = sphere.retract(starts(0, size.trials, 2, 3).astype(jnp.float64))
        run.progress(f"gradients at {size.trials} positions")
        checks = _gradient_checks(rows, players)
        lengths = np.geomspace(1e-3, 3.0, size.points)
        run.progress(f"steps of {size.points} lengths")
        steps = _steps(rows, players, jnp.asarray(lengths))
        drawn = sphere.retract(jnp.asarray(PLAYERS, jnp.float64))
        picture = _picture(rows, drawn)
    run.progress("search for the nearest points")
    nearest = _nearest(steps, size.searched)
    great, landed, plain, tips = (steps[name] for name in ("great", "landed", "plain", "tips"))
    return {
        "size": vars(size),
        "eigenvalues": list(EIGENVALUES),
        "gradient": checks,
        "lengths": rounded(lengths),
        # Medians over positions: a position with a short gradient has a long step size.
        "apart": {
            "retraction and step": _median(landed - tips),
            "retraction and great circle": _median(landed - great),
            "plain step and great circle": _median(plain - great),
            "great circle and step": _median(great - tips),
        },
        "off": rounded(np.abs(np.linalg.norm(landed, axis=-1) - 1).max()),
        "as stated": rounded(
            np.abs(landed - tips / np.linalg.norm(tips, axis=-1)[..., None]).max()
        ),
        "nearest": nearest,
        "picture": picture,
    }


def claims(results: Results) -> list[Claim]:
    """Compare the text and the caption with the steps."""
    checks, slopes, nearest = results["gradient"], slopes_of(results), results["nearest"]
    first, second, plain, exponential = (slopes[name] for name in results["apart"])
    longest = max(results["lengths"])
    return [
        Claim(
            "The Riemannian gradient is the projection of the gradient on the tangent space of the sphere.",
            f"At {results['size']['trials']} positions the projected gradient has at most {checks['normal']:.1g} "
            "of the gradient's length along the player, and the slope of the utility along great circles differs "
            f"from its inner product with their directions by at most {checks['slope']:.1g} of that length (holds "
            f"up to {EXACT:g}).",
            holds_if(max(checks["normal"], checks["slope"]) <= EXACT),
            "the second of two players; slopes by finite differences",
        ),
        Claim(
            "A retraction at a player takes a scaled projected gradient and returns a vector on the sphere.",
            f"Updates with steps up to a length of {longest:g} end at most {results['off']:.1g} off the sphere, "
            f"and differ by at most {results['as stated']:.1g} from the scaled sum of player and step (holds up to "
            f"{EXACT:g}). Their distance to the step itself has slope {first:.2f} in its length (holds if 2 within "
            f"{ORDER:g}: equal to first order, as a retraction must be).",
            holds_if(
                max(results["off"], results["as stated"]) <= EXACT and abs(first - 2) <= ORDER
            ),
            "the second of two players, updates of Alg. 2",
        ),
        Claim(
            "A retraction is not a projection in general, although the one that is used looks like one on the "
            "sphere.",
            f"At {nearest['positions']} positions, for steps up to a length of {LONG:.2f}, the retraction ends at "
            f"most {nearest['retraction']:.1g} degrees from the point of the sphere that is nearest to the step, "
            f"found by search (holds up to {APART / 100:g}). The exponential map ends up to "
            f"{nearest['great circle']:.3g} degrees from it (holds from {APART:g} on). Its distance "
            f"to the step has slope {exponential:.2f} (it is a retraction, and the claim holds, if 2 within "
            f"{ORDER:g}).",
            holds_if(
                nearest["retraction"] <= APART / 100
                and nearest["great circle"] >= APART
                and abs(exponential - 2) <= ORDER
            ),
            "projection: the nearest point of the sphere",
        ),
        Claim(
            "The retraction agrees with the exponential map to second order, and a step without the projection to "
            "first order only.",
            f"For steps up to a length of {SHORT:g}, their distances to the great circle have slopes {second:.2f} "
            f"and {plain:.2f} in the length (holds if 3 and 2 within {ORDER:g}).",
            holds_if(abs(second - 3) <= ORDER and abs(plain - 2) <= ORDER),
            "the second of two players, great circle along the projected gradient",
            ours=True,
        ),
    ]


def summary(results: Results) -> str:
    """Describe the drawing and the orders of agreement."""
    picture, slopes = results["picture"], slopes_of(results)
    second = slopes["retraction and great circle"]
    agrees = "agrees" if abs(second - 3) <= ORDER else "does not agree"
    return (
        "Left: the gradient of the second player, its projection on the tangent plane, the step and the "
        "retraction. Centre: the same in the plane through the centre, the player and its gradient, which contains "
        f"all of them. The gradient is {picture['angle']:.0f} degrees from the tangent plane. A step of length "
        f"{picture['length']:.2f} would rotate the player by {np.degrees(picture['length']):.0f} degrees along the "
        f"great circle; the retraction rotates it by {picture['rotation']:.0f}. Right: the retraction {agrees} "
        f"with the exponential map to second order (slope {second:.2f}); a step without the projection has slope "
        f"{slopes['plain step and great circle']:.2f}."
    )


def reading(results: Results) -> str:
    """Describe positions and step lengths."""
    return (
        "The paper's figure is a diagram of terms without numbers. Here it is a step of the second of two players "
        f"on diag({', '.join(f'{value:g}' for value in results['eigenvalues'])}); the first one, its parent, is "
        f"not at its optimum. The drawing has a step size of {DRAWN:g}. Curves are medians over "
        f"{results['size']['trials']} random positions of both players, with step sizes that give the lengths on "
        "the axis."
    )


def slopes_of(results: Results) -> dict[str, float]:
    """Return the slope of each distance on logarithmic axes, for short steps."""
    lengths = np.asarray(results["lengths"])
    short = lengths <= SHORT
    return {
        name: log_slope(lengths[short].tolist(), np.asarray(values)[short].tolist())
        for name, values in results["apart"].items()
    }


def great_circle(player: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the exponential map: the end of a great circle from players (..., d) along tangents (..., d)."""
    length = np.linalg.norm(step, axis=-1, keepdims=True)
    return np.cos(length) * player + np.sin(length) * step / length


def _gradient_checks(rows: SymmetricRows, players: jax.Array) -> Results:
    """Return the normal part of the projected gradient, and its difference to slopes along great circles."""
    full = np.asarray(jax.vmap(lambda one: gradients(rows, one)[1])(players))
    mine = np.asarray(players)[:, 1]
    projected = np.asarray(sphere.project_tangent(jnp.asarray(mine), jnp.asarray(full)))
    drawn = np.random.default_rng(0).normal(size=mine.shape)
    along = np.asarray(sphere.project_tangent(jnp.asarray(mine), jnp.asarray(drawn)))
    along = along / np.linalg.norm(along, axis=1, keepdims=True)

    def utility(moved: np.ndarray) -> np.ndarray:
        both = jnp.stack([players[:, 0], jnp.asarray(moved)], axis=1)

        def one(pair: jax.Array) -> jax.Array:
            scores = rows.scores(pair)
            return utilities(rows.gram(scores, scores))[1]

        return np.asarray(jax.vmap(one)(both))

    ahead, behind = (utility(great_circle(mine, side * HALF * along)) for side in (1, -1))
    slope, length = (ahead - behind) / (2 * HALF), np.linalg.norm(full, axis=1)
    expected = (projected * along).sum(axis=1)
    return {
        "normal": rounded((np.abs((projected * mine).sum(axis=1)) / length).max()),
        "slope": rounded((np.abs(slope - expected) / length).max()),
    }


def _steps(rows: SymmetricRows, players: jax.Array, lengths: jax.Array) -> dict[str, np.ndarray]:
    """Return the ends of steps of each length from each position, arrays of shape (trials, lengths, 3)."""

    def one(players: jax.Array, length: jax.Array) -> dict[str, jax.Array]:
        along = sphere.project_tangent(players, gradients(rows, players))[1]
        size = length / jnp.linalg.norm(along)
        ends = {"tips": players[1] + size * along, "along": size * along}
        for name, riemannian in (("landed", True), ("plain", False)):
            game = Alpha(lambda _: size, riemannian=riemannian)
            ends[name] = game.update(rows, game.init(players))[0].players[1]
        return ends

    every = jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))
    ends = {name: np.asarray(values) for name, values in jax.jit(every)(players, lengths).items()}
    ends["great"] = great_circle(np.asarray(players)[:, None, 1], ends["along"])
    return ends


def _nearest(steps: dict[str, np.ndarray], count: int) -> Results:
    """Return the largest angles, in degrees, of two ends to the nearest points of the sphere, found by search."""
    worst = {"landed": 0.0, "great": 0.0}
    for trial in range(count):
        for tip, landed, great, along in zip(
            *(steps[name][trial] for name in ("tips", "landed", "great", "along")), strict=True
        ):
            if np.linalg.norm(along) > LONG:
                continue
            found = nearest_point(tip)
            for name, end in (("landed", landed), ("great", great)):
                apart = np.degrees(2 * np.arcsin(min(float(np.linalg.norm(end - found)) / 2, 1.0)))
                worst[name] = max(worst[name], float(apart))
    return {
        "positions": count,
        "retraction": rounded(worst["landed"]),
        "great circle": rounded(worst["great"]),
    }


def nearest_point(target: np.ndarray) -> np.ndarray:
    """Return the point of the unit sphere that is nearest to a target (3,), by search over two angles.

    The search does not use that the answer is the scaled target. The poles of the angles are on the axis on which
    the target has its smallest coordinate, far from the answer.
    """
    order = np.argsort(-np.abs(target))

    def point(angles: np.ndarray) -> np.ndarray:
        tilt, turn = angles
        found = np.empty(3)
        found[order] = np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)
        return found

    def distance(angles: np.ndarray) -> float:
        return float(((point(angles) - target) ** 2).sum())

    begins = [np.array([0.0, turn]) for turn in (0.0, np.pi)]
    tries = [minimize(distance, begin, method="BFGS", options={"gtol": 1e-8}) for begin in begins]
    return point(min(tries, key=lambda one: one.fun).x)


def _median(difference: np.ndarray) -> Any:
    """Return the median length over positions of differences (trials, lengths, 3)."""
    return rounded(np.median(np.linalg.norm(difference, axis=-1), axis=0))


def _picture(rows: SymmetricRows, players: jax.Array) -> Results:
    """Return the vectors of the drawing."""
    game = Alpha(DRAWN)
    full = np.asarray(gradients(rows, players)[1])
    landed = np.asarray(game.update(rows, game.init(players))[0].players[1])
    player = np.asarray(players[1])
    along = full - (full @ player) * player
    return {
        "parent": rounded(players[0]),
        "player": rounded(player),
        "gradient": rounded(DRAWN * full),
        "projected": rounded(DRAWN * along),
        "landed": rounded(landed),
        "great": rounded(great_circle(player, DRAWN * along)),
        "length": rounded(DRAWN * np.linalg.norm(along)),
        "rotation": rounded(np.degrees(np.arccos(landed @ player))),
        "angle": rounded(np.degrees(np.arctan2(abs(full @ player), np.linalg.norm(along)))),
    }
