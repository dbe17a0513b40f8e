"""The figure of `ablation`: streaks on the way, and what each step size has found in the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from eigengame.experiments._base import Results
from eigengame.experiments._figures import named, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "the game": "#1f5fa8",
    "without order": "#d9822b",
    "without normaliser": "#3a923a",
    "without both": "#b5382f",
}


def draw_ablation(results: Results, footnote: Iterable[int]) -> Figure:
    """Draw streaks on the way and what each step size has found in the end, with the footnote's counts."""
    shown = results["panels"]
    figure, axes = panels(len(shown), rows=2, height=2.8)
    for (above, below), (spectrum, panel) in zip(axes.T, shown.items(), strict=True):
        above.set_title(f"{spectrum} spectrum")
        _draw_streaks(above, results["iterations"], panel["EigenGame"])
        above.set_xlabel("iterations")
        for variant, kept in panel.items():
            _draw_steps(below, variant, kept)
        below.set(xlabel="step size", xscale="log")
        for one in (above, below):
            _count_components(one, footnote)
    axes[0, 0].set_ylabel("longest streak, EigenGame")
    axes[1, 0].set_ylabel("within $\\pi/8$ of any player")
    axes[0, 0].legend(fontsize=7, frameon=False, loc="center right")
    axes[1, 0].legend(fontsize=7, frameon=False, loc="upper left")
    return figure


def _draw_streaks(axes: Axes, x: list[int], kept: Results) -> None:
    """Draw the streaks of the four games, ever thinner: three of them lie on each other."""
    for (game, one), width in zip(kept.items(), (1.6, 5.0, 3.0, 1.2), strict=True):
        mean, error = (np.asarray(one["streak"][part]) for part in ("mean", "error"))
        axes.plot(x, mean, color=COLOURS[game], linewidth=width, label=game)
        axes.fill_between(
            x, mean - error, mean + error, color=COLOURS[game], alpha=0.2, linewidth=0
        )


def _draw_steps(axes: Axes, variant: str, kept: Results) -> None:
    """Draw how many components had a player at the end, for each step size."""
    full = variant == "EigenGame"
    for game, one in kept.items():
        axes.plot(
            [float(step) for step in one["tried"]],
            [end["found"] for end in one["tried"].values()],
            "o-" if full else "s:",
            color=COLOURS[game],
            fillstyle="full" if full else "none",
            markersize=3.5 if full else 6,
            linewidth=1,
            label=named(variant) if game == "the game" else None,
        )


def _count_components(axes: Axes, footnote: Iterable[int]) -> None:
    """Scale an axis for counts from 0 to 50, with lines at the footnote's."""
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set(ylim=(-0.15, 65), yticks=[0, 1, 2, 5, 10, 20, 50])
    axes.set_yticklabels(["0", "1", "2", "5", "10", "20", "50"])
    axes.yaxis.minorticks_off()
    for count in footnote:
        axes.axhline(count, color="#777777", linewidth=1, zorder=0)
