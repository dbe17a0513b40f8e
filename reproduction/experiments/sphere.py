"""Three players on diag(3, 2, 1), moving on the unit sphere: the paper's first picture, animated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.algorithms import Alpha
from eigengame.game import SymmetricRows
from eigengame.report.page import as_script_json
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import rounded
from reproduction.figures import SERIES, panels
from reproduction.protocol import Protocol
from reproduction.trials import Family, components, eigengame, play_trials, starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Three players on the unit sphere"
PAPER = "fig eigengame_viz"

EIGENVALUES = (3.0, 2.0, 1.0)
STEP = 0.01
NEAR = 1.0
"""A player has arrived within this many degrees of its axis."""
SHOWN = 0
"""Index of the trial in the picture."""
PLAYERS = SERIES[:3]
"""Colours of the players."""

ALGORITHMS: dict[str, Family] = {"EigenGame^R": Alpha, "EigenGame": eigengame}
"""Alg. 2 with the projection, which is drawn, and without."""

READINGS = {
    "EigenGame^R": "with the projection of Alg. 2",
    "EigenGame": "without the projection",
}

PROTOCOL = Protocol(full={"updates": 800, "every": 5, "trials": 10}, quick={"every": 80})


def measure(run: Run) -> Results:
    """Measure the path of one trial, and the angles of all players to their axes."""
    size = PROTOCOL.size(run.quick)
    rows = SymmetricRows(jnp.diag(jnp.asarray(EIGENVALUES, jnp.float32)))
    players = starts(0, size.trials, 3, 3)
    angles, ways = {}, {}
    for name, family in ALGORITHMS.items():
        run.progress(f"{size.trials} starts: {name}")
        seen = play_trials(
            family, STEP, players, rows, None, components, updates=size.updates, every=size.every
        )
        ways[name] = np.concatenate([np.asarray(players)[:, None], seen], axis=1)
        truth = np.broadcast_to(np.eye(3), ways[name].shape)
        angles[name] = np.degrees(metrics.angular_error(ways[name].astype(np.float64), truth))
    return {
        "eigenvalues": list(EIGENVALUES),
        "step": STEP,
        "size": vars(size),
        "iterations": list(range(0, size.updates + 1, size.every)),
        "way": rounded(with_positive_ends(ways["EigenGame^R"][SHOWN])),
        "angles": rounded(angles["EigenGame^R"]),
        "ends": {name: rounded(angle[:, -1]) for name, angle in angles.items()},
    }


def claims(results: Results) -> list[Claim]:
    """Compare the final position of each player with its axis."""
    return [
        Claim(
            "EigenGame guides every player along the unit sphere to its own eigenvector, in parallel.",
            f"From {len(ends)} random starts, after {results['iterations'][-1]} iterations, players are at most "
            f"{', '.join(f'{angle:.1g}' for angle in _worst(ends))} degrees from their axes (holds up to "
            f"{NEAR:g}).",
            holds_if(bool(_worst(ends).max() <= NEAR)),
            f"{READINGS[name]}; our own step size",
        )
        for name, ends in results["ends"].items()
    ]


def draw(results: Results) -> Figure:
    """Draw the paths of one trial on the sphere, and the angles of all trials."""
    figure, axes = panels(2, width=3.6, height=3.4)
    axes[0, 0].remove()
    scene = figure.add_subplot(1, 2, 1, projection="3d")
    _draw_sphere(scene)
    _draw_players(scene, results["way"], len(results["way"]) - 1)
    scene.set_title("one trial", fontsize=9)
    right = axes[0, 1]
    for i, (colour, style) in enumerate(zip(PLAYERS, ("-", "--", ":"), strict=True)):
        for trial, angles in enumerate(np.asarray(results["angles"])[:, :, i]):
            right.semilogy(
                results["iterations"],
                angles,
                style,
                color=colour,
                linewidth=0.9,
                label=f"player {i + 1}" if trial == 0 else None,
            )
    lowest = min(1e-3, 0.7 * float(np.min(results["angles"])))
    right.set(xlabel="iterations", ylabel="angle to its axis (degrees)", ylim=(lowest, 120))
    right.set_title(f"{len(results['angles'])} random starts", fontsize=9)
    right.legend(fontsize=8, frameon=False, loc="lower left")
    return figure


def summary(results: Results) -> str:
    """Describe when the players arrive, and their final angles."""
    worst = {name: _worst(ends).max() for name, ends in results["ends"].items()}
    arrived = []
    for i in range(3):
        at = last_arrival(results, i)
        when = "not in all trials" if at is None else f"by iteration {at}"
        arrived.append(f"player {i + 1} {when}")
    return (
        "Thin arrows are the initial players of one trial, thick arrows the final ones. A player that ends at the "
        "negative end of its axis is drawn with the other sign, which is the same game. Within "
        f"{NEAR:g} degree of its axis is {', '.join(arrived)}. The largest final angle is "
        f"{worst['EigenGame^R']:.1g} degrees with the projection and {worst['EigenGame']:.1g} without. "
        "`animation.gif` shows the same trial; in `animation.html` the sphere can be rotated."
    )


def reading(results: Results) -> str:
    """Describe the step size."""
    return (
        f"Alg. 2 on diag(3, 2, 1), all three players at once, from {len(results['angles'])} random starts with a "
        f"step size of {results['step']:g}; the paper gives none."
    )


def extras(results: Results, folder: Path) -> None:
    """Write the trial as an animation, and as a page with a sphere that can be rotated."""
    moving, page = folder / "animation.gif", folder / "animation.html"
    _animate(results, moving)
    template = Path(__file__).with_name("sphere.html")
    kept = {key: results[key] for key in ("way", "iterations", "eigenvalues")}
    kept |= {"colours": PLAYERS, "angles": results["angles"][SHOWN]}
    page.write_text(
        template.read_text(encoding="utf-8").replace("{{data}}", as_script_json(kept)),
        encoding="utf-8",
    )


def with_positive_ends(way: np.ndarray) -> np.ndarray:
    """Flip the signs of paths (points, players, d) so that each player ends on a positive axis.

    Utilities are even in every player, so that the game does not change.
    """
    signs = np.sign(np.einsum("ii->i", way[-1]))
    return way * np.where(signs == 0, 1, signs)[None, :, None]


def last_arrival(results: Results, i: int) -> int | None:
    """Return the iteration from which player i stays near its axis in all trials, or None."""
    away = (np.asarray(results["angles"])[:, :, i] > NEAR).any(axis=0)
    after = int(np.flatnonzero(away)[-1]) + 1 if away.any() else 0
    return results["iterations"][after] if after < away.size else None


def _worst(ends: list[list[float]]) -> np.ndarray:
    """Return the largest angle of each player over the trials."""
    return np.asarray(ends).max(axis=0)


def _draw_sphere(scene: Any) -> None:
    """Draw the sphere and its three axes."""
    turn, height = np.meshgrid(np.linspace(0, 2 * np.pi, 37), np.linspace(0, np.pi, 19))
    x, y, z = np.sin(height) * np.cos(turn), np.sin(height) * np.sin(turn), np.cos(height)
    scene.computed_zorder = False  # Draw players last, in front of the sphere.
    scene.plot_surface(x, y, z, color="#eef2f7", alpha=0.25, linewidth=0, shade=False)
    scene.plot_wireframe(x, y, z, color="#c4ccd6", linewidth=0.3, rstride=3, cstride=3)
    for i, axis in enumerate(np.eye(3)):
        scene.plot(*(1.25 * np.stack([-axis, axis], axis=1)), color="#aaaaaa", linewidth=0.8)
        scene.text(*(1.38 * axis), f"$v_{i + 1}$", ha="center", va="center", fontsize=10)
    scene.set(xlim=(-0.86, 0.86), ylim=(-0.86, 0.86), zlim=(-0.86, 0.86))
    scene.set_box_aspect((1, 1, 1))
    scene.set_axis_off()
    scene.view_init(elev=24, azim=38)


def _draw_players(scene: Any, way: list[Any], upto: int) -> list[Any]:
    """Draw initial players, their paths up to a point, and their position; return the artists."""
    drawn = []
    for i, colour in enumerate(PLAYERS):
        path = np.asarray(way)[: upto + 1, i]
        thin, thick = (
            {"linewidth": 0.9, "alpha": 0.6},
            {"linewidth": 2.4, "arrow_length_ratio": 0.14},
        )
        drawn += scene.plot(*path.T, color=colour, linewidth=1.6)
        drawn.append(scene.quiver(0, 0, 0, *path[0], color=colour, arrow_length_ratio=0.08, **thin))
        drawn.append(scene.quiver(0, 0, 0, *path[-1], color=colour, **thick))
    return drawn


def _animate(results: Results, path: Path) -> None:
    """Write an animation of the first half of the path, where most happens, with a pause at the end."""
    from matplotlib.animation import PillowWriter
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 4))
    scene = figure.add_axes((0, 0, 1, 1), projection="3d")
    _draw_sphere(scene)
    note = figure.text(0.03, 0.03, "", fontsize=9, color="#555555")
    points = range(0, len(results["way"]) // 2 + 1, 2)
    writer = PillowWriter(fps=12)
    with writer.saving(figure, path, dpi=90):
        for point in [*points, *[points[-1]] * (len(points) // 3)]:
            drawn = _draw_players(scene, results["way"], point)
            note.set_text(f"iteration {results['iterations'][point]}")
            writer.grab_frame()
            for one in drawn:
                one.remove()
