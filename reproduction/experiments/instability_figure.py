"""Figure of `instability`: the geometry of a step, and measured steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.base import Results
from reproduction.figures import COLOURS, label_of, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = ("EigenGame", "EigenGame^R")
STYLES = ("-", "--", ":")
"""Line styles of the step sizes on the circle."""


def draw_steps(results: Results) -> Figure:
    """Draw the geometry, steps on the circle, the share of the learning rate, and the fifty players."""
    figure, axes = panels(2, rows=2, width=4.6, height=3.6)
    _draw_picture(axes[0, 0], results["picture"])
    _draw_moves(axes[0, 1], results)
    _draw_shares(axes[1, 0], results)
    _draw_jitters(axes[1, 1], results)
    return figure


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
        axes.text(tip[0] + 0.12, tip[1] + 0.14, symbol, **small, color=COLOURS[name])
    axes.plot(*player, "o", color="#222222", markersize=6)
    axes.text(player[0] - 0.14, player[1] + 0.06, r"$\hat v$", **small)
    axes.plot(1, 0, "*", color="#222222", markersize=11)
    axes.text(0.66, 0, "optimum", **small)
    axes.set(aspect="equal", xlim=(0.2, 4.1), ylim=(-1.2, 1.3))
    axes.axis("off")
    axes.set_title("one step of each kind, and normalisation", fontsize=9)


def _draw_moves(axes: Axes, results: Results) -> None:
    """Draw the rotation by one step against the angle to the optimum."""
    x = results["angles"]
    for name in NAMES:
        for style, step, moved in zip(
            STYLES, results["steps"], results["moved"][name], strict=True
        ):
            label = rf"{label_of(name)}, $\alpha$ = {step:g}"
            axes.plot(x, moved, style, color=COLOURS[name], label=label)
    axes.plot([0, 90], [0, 90], color="#999999", linewidth=0.8)
    axes.plot([0, 45], [0, 90], color="#999999", linewidth=0.8)
    axes.text(89, 92, "onto the optimum", fontsize=7, color="#777777", ha="right")
    axes.text(45, 92, "as far beyond it", fontsize=7, color="#777777", ha="right")
    axes.set(xlabel="angle to the optimum (degrees)", ylabel="rotation by one step (degrees)")
    axes.set(xlim=(0, 90), ylim=(0, 125), yticks=range(0, 91, 15))
    axes.legend(fontsize=7, frameon=False, loc="upper center", ncols=2)


def _draw_shares(axes: Axes, results: Results) -> None:
    """Draw the share of the learning rate that is left without the projection."""
    for style, step, share in zip(STYLES, results["steps"], results["share"], strict=True):
        label = rf"$\alpha$ = {step:g}"
        axes.plot(results["angles"], share, style, color=COLOURS["EigenGame"], label=label)
    axes.set_title("without the projection", fontsize=9)
    axes.set(xlabel="angle to the optimum (degrees)", ylabel="share of the learning rate left")
    axes.set(xlim=(0, 90), ylim=(0, 1.03))
    axes.legend(fontsize=7, frameon=False)


def _draw_jitters(axes: Axes, results: Results) -> None:
    """Draw the distance of fifty players from the equilibrium they start at."""
    seen = results["spectrum"]
    for name in NAMES:
        kept = seen[name]
        axes.loglog(
            seen["steps"],
            kept["all"],
            "o-",
            color=COLOURS[name],
            markersize=3.5,
            label=label_of(name),
        )
    high, low = results["circle"]
    axes.axhline(results["beside"], color="#999999", linewidth=0.8)
    axes.text(
        seen["steps"][0], 1.2 * results["beside"], "initial angle", fontsize=7, color="#777777"
    )
    axes.axvline(1 / (high - low), color="#999999", linewidth=0.8)
    axes.text(1.1 / (high - low), 2e-4, r"$\alpha$ = 1/gap", fontsize=7, color="#777777")
    axes.set(xlabel=r"step size $\alpha$", ylabel="final angle, RMS (degrees)")
    axes.set(ylim=(1e-4, 200))
    axes.set_title("fifty players, exponential spectrum", fontsize=9)
    axes.legend(fontsize=7, frameon=False, loc="lower left")
