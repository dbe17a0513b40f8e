"""Figure of `decentralised`: iterations and broadcasts against lag and dropout, and streaks on batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reproduction.base import Results
from reproduction.figures import SERIES, draw_band, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Means = Mapping[str, Sequence[tuple[float, float, float, float]]]
"""For each step size: lag or dropout, iterations, their standard error, broadcasts."""


MARKS = ("o", "s", "^")
"""Markers of the step sizes."""
STYLES = {"shared": ("#000000", "-"), "own": ("#cc79a7", "--"), "all": ("#777777", ":")}
"""Colour and line style of the ways to share batches."""


def draw_broadcasts(
    means: Mapping[str, Means], batches: Results, names: Mapping[str, str], k: int
) -> Figure:
    """Draw a panel for lag, one for dropout and one for batches, with one legend."""
    figure, axes = panels(3, width=2.6, height=3.4)
    lag, dropout, streaks = axes[0]
    for one, (kind, each) in zip((lag, dropout), means.items(), strict=True):
        _draw_costs(one, each)
        one.set(xlabel=kind, yscale="log", ylim=(4, None))
        one.axhline(k - 1, color="#999999", linewidth=1, zorder=0, label=f"{k - 1} parents")
    lag.set_xscale("log", base=2)
    lags = [point[0] for point in max(means["lag"].values(), key=len)]
    lag.set_xticks(lags, [f"{one:g}" for one in lags])
    lag.set_ylabel(f"until all {k} are within $\\pi/8$")
    lag.set_title("delayed broadcasts", fontsize=9)
    dropout.set_title("lost broadcasts", fontsize=9)
    _draw_streaks(streaks, batches, names, k)
    handles = [*lag.get_legend_handles_labels()[0], *streaks.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_costs(axes: Axes, means: Means) -> None:
    """Draw iterations with standard errors, and broadcasts, one colour and marker per step size."""
    for (step, points), colour, mark in zip(means.items(), SERIES, MARKS, strict=False):
        axes.plot([], [], mark, color=colour, markersize=4, label=f"step size {step}")
        if points:
            x, mean, error, heard = zip(*points, strict=True)
            axes.errorbar(x, mean, error, color=colour, marker=mark, markersize=4, capsize=2)
            axes.plot(x, heard, "-.", color=colour, marker=mark, markersize=2.5, linewidth=1)
    axes.plot([], [], "-", color="#444444", label="iterations")
    axes.plot([], [], "-.", linewidth=1, color="#444444", label="broadcasts")


def _draw_streaks(axes: Axes, batches: Results, names: Mapping[str, str], k: int) -> None:
    """Draw the streaks on batches over a logarithmic axis."""
    x = batches["iterations"]
    for name, run in batches["runs"].items():
        colour, style = STYLES[name]
        draw_band(axes, x, run["streak"], color=colour, linestyle=style, label=names[name])
    axes.set(xlabel="iterations", ylabel="longest streak", ylim=(0, k * 1.04), xscale="log")
    axes.set_xlim(10, None)
    axes.set_title("batches", fontsize=9)
