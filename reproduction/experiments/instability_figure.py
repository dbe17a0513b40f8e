"""Figure of `instability`: the geometry of a step, and measured steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.base import Results
from reproduction.figures import COLOURS, MARKERS, label_of, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = ("EigenGame", "EigenGame^R")
STYLES: tuple[Any, ...] = ("-", "--", ":")
"""Line styles of the step sizes on the circle."""


def draw_steps(results: Results) -> Figure:
    """Draw the geometry, steps on the circle, the share of the learning rate, and the fifty players."""
    figure, axes = panels(2, rows=2, width=3.6, height=3.0)
    _draw_picture(axes[0, 0], results["picture"])
    _draw_moves(axes[0, 1], results)
    _draw_shares(axes[1, 0], results)
    _draw_jitters(axes[1, 1], results)
    _add_legend(figure, results["steps"])
    return figure


def _add_legend(figure: Figure, steps: list[float]) -> None:
    """Add one legend: colours and markers of the algorithms, line styles of the step sizes on the circle."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[name], marker=MARKERS[name], label=label_of(name))
        for name in NAMES
    ]
    handles += [
        Line2D([], [], color="#444444", linestyle=style, label=rf"$\alpha$ = {step:g}")
        for style, step in zip(STYLES, steps, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=8)


def _draw_picture(axes: Axes, picture: Results) -> None:
    """Draw one step of each kind on the circle, from the same player."""
    turn = np.linspace(np.radians(-60), np.radians(60), 200)
    axes.plot(np.cos(turn), np.sin(turn), color="#999999", linewidth=1)
    player = np.asarray(picture["player"])
    small: dict[str, Any] = {"fontsize": 8, "ha": "center", "va": "center"}
    symbols = {"EigenGame": r"$\alpha\nabla$", "EigenGame^R": r"$\alpha\nabla^R$"}
    for name, symbol in symbols.items():
        tip, landed = player + picture["steps"][name], picture["landed"][name]
        axes.annotate(
            "",
            xy=tip,
            xytext=tuple(player),
            arrowprops={"arrowstyle": "-|>", "color": COLOURS[name], "linewidth": 1.6}
            | {"shrinkA": 0, "shrinkB": 0},
        )
        axes.plot(*zip(tip, landed, strict=True), ":", color=COLOURS[name], linewidth=1.2)
        axes.plot(*landed, "o", color=COLOURS[name], markersize=6)
        axes.text(tip[0] + 0.25, tip[1] + 0.1, symbol, **small, color=COLOURS[name])
    axes.plot(*player, "o", color="#222222", markersize=6)
    axes.text(player[0] - 0.14, player[1] + 0.06, r"$\hat v$", **small)
    axes.plot(1, 0, "*", color="#222222", markersize=11)
    axes.text(0.5, 0, "optimum", **small)
    axes.set(aspect="equal", xlim=(0.1, 4.2), ylim=(-1.0, 1.1))
    axes.axis("off")
    axes.set_title("one step of each kind, and normalisation", fontsize=9)


def _draw_moves(axes: Axes, results: Results) -> None:
    """Draw the rotation by one step against the angle to the optimum."""
    x = results["angles"]
    for name in NAMES:
        for style, moved in zip(STYLES, results["moved"][name], strict=True):
            axes.plot(x, moved, style, color=COLOURS[name])
    axes.plot([0, 90], [0, 90], color="#999999", linewidth=0.8)
    axes.plot([0, 45], [0, 90], color="#999999", linewidth=0.8)
    axes.text(89, 92, "onto the optimum", fontsize=7, color="#777777", ha="right")
    axes.text(45, 92, "as far beyond it", fontsize=7, color="#777777", ha="right")
    axes.set(xlabel="angle to the optimum (degrees)", ylabel="rotation by one step (degrees)")
    axes.set(xlim=(0, 90), ylim=(0, 100), yticks=range(0, 91, 15))


def _draw_shares(axes: Axes, results: Results) -> None:
    """Draw the share of the learning rate that is left without the projection."""
    for style, share in zip(STYLES, results["share"], strict=True):
        axes.plot(results["angles"], share, style, color=COLOURS["EigenGame"])
    axes.set_title("without the projection", fontsize=9)
    axes.set(xlabel="angle to the optimum (degrees)", ylabel="share of the learning rate left")
    axes.set(xlim=(0, 90), ylim=(0, 1.03))


def _draw_jitters(axes: Axes, results: Results) -> None:
    """Draw the distance of fifty players from the equilibrium they start at."""
    seen = results["spectrum"]
    for name, size, fill in zip(NAMES, (7, 3.5), ("none", "full"), strict=True):
        axes.loglog(
            seen["steps"],
            seen[name]["all"],
            "-",
            marker=MARKERS[name],
            fillstyle=fill,
            color=COLOURS[name],
            markersize=size,
        )
    lowest = min(min(seen[name]["all"]) for name in NAMES)
    high, low = results["circle"]
    axes.axhline(results["beside"], color="#999999", linewidth=0.8)
    axes.text(seen["steps"][0], 2 * results["beside"], "initial angle", fontsize=7, color="#777777")
    axes.axvline(1 / (high - low), color="#999999", linewidth=0.8)
    axes.text(0.9 / (high - low), 30, r"$\alpha$ = 1/gap", fontsize=7, color="#777777", ha="right")
    axes.set(xlabel=r"step size $\alpha$", ylabel="final angle, RMS (degrees)")
    axes.set(ylim=(min(1e-4, 0.5 * lowest), 200))
    axes.set_title("fifty players, exponential spectrum", fontsize=9)
