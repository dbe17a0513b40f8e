"""Figure of `scree`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reproduction.base import Results
from reproduction.figures import COLOURS, SERIES, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOWEST = 1e-4
"""Lower end of the axis of angles and ratios."""

GREY = "#777777"


def draw_scree(results: Results) -> Figure:
    """Draw one column per reading: the scree plot above, angles and penalty ratios of EigenGame below."""
    readings = results["readings"]
    figure, axes = panels(len(readings), rows=2, width=3.6, height=2.6)
    for (upper, lower), (reading, found) in zip(axes.T, readings.items(), strict=True):
        player = found["players"]["EigenGame"]
        number = np.arange(1, len(found["eigenvalues"]) + 1)
        _draw_quotients(upper, number, found["eigenvalues"], player)
        _draw_angles(lower, number, player)
        upper.set_title(f"{reading}, step size {player['step']:g}", fontsize=9)
        lower.set_xlabel("player")
    axes[0, 0].set_ylabel("mean over rows")
    axes[1, 0].set_ylabel("radians, or a share")
    handles = [handle for one in axes[:, 0] for handle in one.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_quotients(
    axes: Axes, number: np.ndarray, eigenvalues: list[float], player: Results
) -> None:
    """Draw eigenvalues, and Rayleigh quotients and utilities of the players."""
    axes.plot(number, eigenvalues, color="#bbbbbb", linewidth=5, label="eigenvalues")
    axes.plot(
        number,
        player["rayleigh"],
        "-",
        marker="o",
        color=COLOURS["EigenGame"],
        markersize=3.5,
        linewidth=1,
        label="Rayleigh quotients",
    )
    utility = np.asarray(player["utility"])
    axes.plot(
        number[utility > 0],
        utility[utility > 0],
        "--",
        marker="x",
        color="#000000",
        markersize=4,
        linewidth=0.8,
        label="utilities",
    )
    axes.set_yscale("log")
    if (utility <= 0).any():
        note = axes.text(
            0.98,
            0.5,
            f"{int((utility <= 0).sum())} utilities below 0\nare not shown",
            fontsize=7,
            ha="right",
            color=GREY,
            transform=axes.transAxes,
        )
        note.set_in_layout(False)


def _draw_angles(axes: Axes, number: np.ndarray, player: Results) -> None:
    """Draw the mean over trials of angles and penalty ratios."""
    axes.axhline(np.pi / 8, color=GREY, linewidth=0.8, linestyle=":", label=r"$\pi/8$")
    for kind, label, colour, style in (
        ("angle", "angle to its own component", SERIES[3], "s-"),
        ("nearest", "angle to the nearest eigenvector", SERIES[2], "^--"),
        ("ratio", "penalty over quotient", SERIES[1], "x:"),
    ):
        mean = np.mean(player[kind], axis=0)
        shown = mean >= LOWEST
        axes.semilogy(
            number[shown],
            mean[shown],
            style,
            color=colour,
            markersize=3.5,
            linewidth=1,
            label=label,
        )
    # The first player has no parents and no penalty.
    below = int((np.mean(player["ratio"], axis=0)[1:] < LOWEST).sum())
    if below:
        axes.text(
            0.02,
            0.03,
            f"{below} ratios below {LOWEST:g} are not shown",
            fontsize=7,
            color=GREY,
            transform=axes.transAxes,
        )
    highest = max(float(np.mean(player[kind], axis=0).max()) for kind in ("angle", "ratio"))
    axes.set_ylim(LOWEST, max(3, 2 * highest))
