"""Figure of `dag`: the measured graph, the changes behind it, and final angles with a silent parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.base import Results
from reproduction.figures import COLOURS, SERIES, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
PARENTS = (*SERIES, COLOURS["remembered"])
"""Colours of the arrows of each parent."""


def draw_graph(results: Results) -> Figure:
    """Draw the graph, the changes of gradients, and the final angles."""
    figure, axes = panels(3, width=3.3, height=3.4)
    changes = np.asarray(results["changes"]["hierarchy"]["gradient"][0])
    _draw_arrows(axes[0, 0], changes)
    names = [str(i + 1) for i in range(results["players"])]
    _draw_cells(axes[0, 1], changes, names, names, scale="log")
    axes[0, 1].set(xlabel="player", ylabel="rotated player")
    axes[0, 1].set_title("relative change of the gradient", fontsize=9)
    angles = np.asarray([np.mean(values, axis=0) for values in results["ends"].values()])
    _draw_cells(axes[0, 2], angles, list(results["ends"]), names, scale="degrees")
    axes[0, 2].set(xlabel="player", ylabel="silent parent")
    axes[0, 2].set_title("final angle to its component (degrees)", fontsize=9)
    return figure


def _draw_arrows(axes: Axes, changes: np.ndarray) -> None:
    """Draw the players on a circle, clockwise from the top, and an arrow for each pair with a change."""
    from matplotlib.patches import FancyArrowPatch

    k = len(changes)
    turn = np.pi / 2 - 2 * np.pi * np.arange(k) / k
    places = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    apart = changes * (1 - np.eye(k))
    for j, i in zip(*np.nonzero(apart), strict=True):
        axes.add_patch(
            FancyArrowPatch(
                tuple(places[j]),
                tuple(places[i]),
                arrowstyle="-|>,head_length=5,head_width=2.5",
                shrinkA=11,
                shrinkB=11,
                linewidth=0.7 + 2.0 * apart[j, i] / apart.max(),
                color=PARENTS[j % len(PARENTS)],
            )
        )
    for i, (x, y) in enumerate(places):
        colour = PARENTS[i % len(PARENTS)] if apart[i].any() else INK
        axes.plot(x, y, "o", markersize=20, color="white", markeredgecolor=colour, zorder=3)
        axes.text(x, y, rf"$\hat v_{i + 1}$", ha="center", va="center", fontsize=10, zorder=4)
    axes.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title("broadcasts that change a gradient", fontsize=9)


def _draw_cells(
    axes: Axes, values: np.ndarray, rows: list[str], columns: list[str], *, scale: str
) -> None:
    """Draw a matrix as shaded cells, with its numbers."""
    if scale == "log":
        positive = np.where(values > 0, values, np.nan)
        low, high = np.log10(np.nanmin(positive)), np.log10(np.nanmax(positive))
        shade = (np.log10(positive) - low) / max(high - low, 1e-9) * 0.75 + 0.15
        shade = np.nan_to_num(shade)
    else:
        shade = values / 90 * 0.9
    axes.imshow(shade, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        colour = "white" if shade[row, column] > 0.55 else INK
        axes.text(column, row, _short(value, scale), color=colour, **text)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(False)
    axes.tick_params(length=0)


def _short(value: float, scale: str) -> str:
    """Format a number of a cell."""
    if scale == "degrees":
        return f"{value:.0f}" if value >= 0.5 else "<0.5"
    if value == 0:
        return "0"
    return f"{value:.2f}" if value >= 0.005 else f"{value:.0e}".replace("e-0", "e-")
