"""Figure of `ablation`: streaks over iterations, and components found at each step size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reproduction.base import Results
from reproduction.figures import SERIES, draw_band, label_of, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_ablation(results: Results, footnote: Iterable[int]) -> Figure:
    """Draw two rows of panels, with lines at the footnote's counts."""
    shown = results["panels"]
    figure, axes = panels(len(shown), rows=2, height=2.8)
    for (above, below), (spectrum, panel) in zip(axes.T, shown.items(), strict=True):
        above.set_title(f"{spectrum} spectrum")
        # Curves may coincide: the wide ones stay visible below the thin ones.
        for (game, kept), colour, width in zip(
            panel["EigenGame"].items(), SERIES, (1.6, 5.0, 3.0, 1.2), strict=True
        ):
            draw_band(
                above,
                results["iterations"],
                kept["streak"],
                color=colour,
                linewidth=width,
                label=game,
            )
        above.set_xlabel("iterations")
        for variant, games in panel.items():
            _draw_steps(below, variant, games)
        below.set(xlabel="step size", xscale="log")
        for one in (above, below):
            _scale_counts(one, footnote)
    axes[0, 0].set_ylabel("longest streak, EigenGame")
    axes[1, 0].set_ylabel("within $\\pi/8$ of any player")
    axes[0, 0].legend(fontsize=7, frameon=False, loc="center right")
    axes[1, 0].legend(fontsize=7, frameon=False, loc="upper left")
    return figure


def _draw_steps(axes: Axes, variant: str, games: Results) -> None:
    """Draw the number of components found at the end, for each step size."""
    plain = variant == "EigenGame"
    for (game, kept), colour in zip(games.items(), SERIES, strict=True):
        axes.plot(
            [float(step) for step in kept["tried"]],
            [end["found"] for end in kept["tried"].values()],
            "o-" if plain else "s:",
            color=colour,
            fillstyle="full" if plain else "none",
            markersize=3.5 if plain else 6,
            linewidth=1,
            label=label_of(variant) if game == "the game" else None,
        )


def _scale_counts(axes: Axes, footnote: Iterable[int]) -> None:
    """Set an axis for counts from 0 to 50, with lines at the footnote's."""
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set(ylim=(-0.15, 65), yticks=[0, 1, 2, 5, 10, 20, 50])
    axes.set_yticklabels(["0", "1", "2", "5", "10", "20", "50"])
    axes.yaxis.minorticks_off()
    for count in footnote:
        axes.axhline(count, color="#777777", linewidth=1, zorder=0)
