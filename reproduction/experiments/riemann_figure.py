"""Figure of `riemann`: a step on the sphere, the same step in its plane, and distances against its length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.base import Results
from reproduction.figures import SERIES, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY = "#222222", "#8a8a8a"
GRADIENT, TANGENT, RETRACTED, GREAT = SERIES
"""Colours of the gradient, its projection, the retraction and the great circle."""
CURVES = {
    "plain step and great circle": (GRADIENT, "s", "no projection – great circle"),
    "retraction and step": (TANGENT, "^", "retraction – step"),
    "retraction and great circle": (RETRACTED, "o", "retraction – great circle"),
}


def draw_step(results: Results) -> Figure:
    """Draw the sphere, the plane of the step, and the distances."""
    figure, axes = panels(3, width=3.3, height=3.6)
    axes[0, 0].remove()
    _draw_sphere(figure.add_subplot(1, 3, 1, projection="3d"), results["picture"])
    _draw_plane(axes[0, 1], results["picture"])
    _draw_distances(axes[0, 2], results)
    _add_legend(figure)
    return figure


def _draw_sphere(scene: Any, picture: Results) -> None:
    """Draw the sphere, the tangent plane at the player, and the vectors of the step."""
    turn, height = np.meshgrid(np.linspace(0, 2 * np.pi, 37), np.linspace(0, np.pi, 19))
    ball = np.stack([np.sin(height) * np.cos(turn), np.sin(height) * np.sin(turn), np.cos(height)])
    # The first axis of the game is drawn upwards.
    player, gradient, projected, landed, great = (
        np.roll(picture[name], -1)
        for name in ("player", "gradient", "projected", "landed", "great")
    )
    along = projected / np.linalg.norm(projected)
    across, centre = np.cross(player, along), 0.15 * player + 0.25 * along
    scene.computed_zorder = False
    scene.plot_surface(*ball, color="#eef2f7", alpha=0.35, linewidth=0, shade=False)
    scene.plot_wireframe(*ball, color="#c4ccd6", linewidth=0.3, rstride=3, cstride=3)
    side, width = np.meshgrid([-0.3, 1.0], [-0.5, 0.5])
    plane = player[:, None, None] + along[:, None, None] * side + across[:, None, None] * width
    scene.plot_surface(*plane, color=TANGENT, alpha=0.18, linewidth=0, shade=False)
    arc = np.linspace(0, picture["length"], 40)
    path = np.cos(arc)[:, None] * player + np.sin(arc)[:, None] * along
    scene.plot(*path.T, color=GREAT, linewidth=2)
    for vector, colour in ((gradient, GRADIENT), (projected, TANGENT)):
        scene.quiver(*player, *vector, color=colour, linewidth=2, arrow_length_ratio=0.12)
    scene.plot(*np.stack([player + projected, landed], axis=1), ":", color=RETRACTED, linewidth=1.6)
    scene.plot(*landed, "o", color=RETRACTED, markersize=6)
    scene.plot(*great, "D", color=GREAT, markersize=5)
    scene.plot(*player, "o", color=INK, markersize=6)
    limits = zip(centre - 1.05, centre + 1.05, strict=True)
    scene.set(**dict(zip(("xlim", "ylim", "zlim"), limits, strict=True)))
    scene.set_box_aspect((1, 1, 1), zoom=1.3)
    scene.set_axis_off()
    # From the side of the step, and a little from above the tangent plane.
    x, y, z = 0.5 * player - across
    scene.view_init(
        elev=np.degrees(np.arctan2(z, np.hypot(x, y))), azim=np.degrees(np.arctan2(y, x))
    )
    scene.set_title("on the sphere", fontsize=9)


def _draw_plane(axes: Axes, picture: Results) -> None:
    """Draw the step in the plane of the player (upwards) and of its projected gradient (to the right)."""
    player, projected = np.asarray(picture["player"]), np.asarray(picture["projected"])
    length = picture["length"]
    frame = np.stack([projected / np.linalg.norm(projected), player])
    circle = np.linspace(np.radians(-20), np.radians(115), 200)
    axes.plot(np.cos(circle), np.sin(circle), color=GREY, linewidth=1)
    axes.plot([-0.35, 1.3], [1, 1], color=GREY, linewidth=1, linestyle="--")
    arc = np.linspace(0, length, 60)
    axes.plot(np.sin(arc), np.cos(arc), color=GREAT, linewidth=2.4)
    start = np.array([0.0, 1.0])
    gradient, tangent = frame @ np.asarray(picture["gradient"]), np.array([length, 0.0])
    for vector, colour in ((gradient, GRADIENT), (tangent, TANGENT)):
        axes.annotate(
            "",
            xy=tuple(start + vector),
            xytext=tuple(start),
            arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2}
            | {"shrinkA": 0, "shrinkB": 0},
        )
    tip, landed = start + tangent, frame @ np.asarray(picture["landed"])
    axes.plot(*zip(start + gradient, tip, strict=True), color=GREY, linewidth=0.9, linestyle=":")
    axes.plot(*zip(tip, landed, strict=True), ":", color=RETRACTED, linewidth=1.6)
    axes.plot([0, landed[0]], [0, landed[1]], ":", color=GREY, linewidth=0.9)
    axes.plot(*landed, "o", color=RETRACTED, markersize=7)
    axes.plot(*(frame @ np.asarray(picture["great"])), "D", color=GREAT, markersize=6)
    axes.plot(*start, "o", color=INK, markersize=7)
    axes.plot(0, 0, "+", color=GREY, markersize=8)
    small: dict[str, Any] = {"fontsize": 9, "ha": "center", "va": "center"}
    axes.text(-0.12, 0.9, r"$\hat v$", **small)
    axes.text(-0.08, -0.12, "centre", **small, color=GREY)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title("in the plane of the step", fontsize=9)


def _draw_distances(axes: Axes, results: Results) -> None:
    """Draw the median distances between the ends of steps."""
    lengths = np.asarray(results["lengths"])
    for name, (colour, marker, label) in CURVES.items():
        axes.loglog(
            lengths,
            results["apart"][name],
            color=colour,
            marker=marker,
            markersize=4,
            markevery=0.12,
            label=label,
        )
    axes.set(xlabel=r"length of the step $\|\alpha\nabla^R\|$", ylabel="distance of the ends")
    axes.set_title("median over random positions", fontsize=9)
    axes.legend(fontsize=7, loc="upper left")


def _add_legend(figure: Figure) -> None:
    """Add the legend of the drawings."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=GRADIENT, linewidth=2, label=r"gradient $\alpha\nabla$"),
        Line2D([], [], color=TANGENT, linewidth=2, label=r"its projection $\alpha\nabla^R$"),
        Line2D([], [], color=RETRACTED, marker="o", linestyle=":", label="retraction"),
        Line2D([], [], color=GREAT, marker="D", linewidth=2, label="great circle"),
        Line2D([], [], color=GREY, linestyle="--", label="tangent plane"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=8)
