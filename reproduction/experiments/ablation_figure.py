"""Figure of `ablation`: components found over iterations, by game, variant and spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reproduction.base import Results
from reproduction.experiments.ablation_text import FOOTNOTE, best
from reproduction.figures import SERIES, label_of, mark_level, panels, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: dict[str, tuple[str, Any, str]] = dict(
    zip(
        ("the game", "without order", "without normaliser", "without both"),
        zip(SERIES, ("-", "--", "-.", "-"), "os^D", strict=True),
        strict=True,
    )
)
"""Colour, line style and marker of each game."""


def draw_ablation(results: Results) -> Figure:
    """Draw a column of panels per spectrum and a row per variant, with lines at the footnote's counts."""
    from matplotlib.lines import Line2D

    shown = results["panels"]
    variants = list(next(iter(shown.values())))
    figure, axes = panels(len(shown), rows=len(variants), width=3.6, height=2.5, shared=True)
    chosen = {game: best(results, game, "found") for game in STYLES}
    for column, (spectrum, panel) in zip(axes.T, shown.items(), strict=True):
        for one, variant in zip(column, variants, strict=True):
            for place, game in enumerate(STYLES):
                step = chosen[game][f"{spectrum}, {variant}"].step
                _draw_counts(one, panel[variant][game], step, game, place)
            one.set_title(f"{label_of(variant)}, {spectrum} spectrum", fontsize=9)
            _scale_counts(one, labelled=one in axes[:, -1])
        column[-1].set_xlabel("iterations")
    for one in axes[:, 0]:
        one.set_ylabel("components found")
    handles = [
        Line2D([], [], color=colour, linestyle=line, marker=marker, markersize=4.5, label=game)
        for game, (colour, line, marker) in STYLES.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    return figure


def _draw_counts(axes: Axes, kept: Results, step: str, game: str, place: int) -> None:
    """Draw the mean count of one game and its range over trials."""
    colour, line, marker = STYLES[game]
    x, counts = kept["iterations"], kept["steps"][step]["found"]
    axes.plot(
        x,
        counts["mean"],
        color=colour,
        linestyle=line,
        linewidth=1.4,
        marker=marker,
        markersize=4.5,
        markevery=spread(x, place, of=len(STYLES)),
    )
    axes.fill_between(x, counts["low"], counts["high"], color=colour, alpha=0.15, linewidth=0)


def _scale_counts(axes: Axes, *, labelled: bool) -> None:
    """Set an axis for counts from 0 to 50, with lines at the footnote's, labelled outside the panel."""
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set(ylim=(-0.15, 65), yticks=[0, 1, 2, 5, 10, 20, 50])
    axes.set_yticklabels(["0", "1", "2", "5", "10", "20", "50"])
    axes.yaxis.minorticks_off()
    for game, count in FOOTNOTE.items():
        mark_level(axes, count, f"footnote,\n{game}: {count}" if labelled else "")
