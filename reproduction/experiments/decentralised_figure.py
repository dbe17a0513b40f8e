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


def draw_broadcasts(
    means: Mapping[str, Means], batches: Results, names: Mapping[str, str], k: int
) -> Figure:
    """Draw a panel for lag, one for dropout and one for batches."""
    figure, axes = panels(3, width=3.8, height=3.2)
    lag, dropout, streaks = axes[0]
    for one, (kind, each) in zip((lag, dropout), means.items(), strict=True):
        _draw_costs(one, each)
        one.set(xlabel=kind, yscale="log", ylim=(4, None))
        one.axhline(k - 1, color="#777777", linewidth=1, zorder=0)
        one.text(
            0.98,
            k - 1,
            f"{k - 1} parents",
            fontsize=7,
            color="#555555",
            ha="right",
            va="top",
            transform=one.get_yaxis_transform(),
        )
    lag.set_xscale("log", base=2)
    lags = [point[0] for point in max(means["lag"].values(), key=len)]
    lag.set_xticks(lags, [f"{one:g}" for one in lags])
    lag.set_ylabel(f"until all {k} are within $\\pi/8$")
    lag.set_title("delayed broadcasts", fontsize=9)
    dropout.set_title("lost broadcasts", fontsize=9)
    dropout.legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 0.69))
    _draw_streaks(streaks, batches, names, k)
    return figure


def _draw_costs(axes: Axes, means: Means) -> None:
    """Draw iterations with standard errors, and broadcasts, one colour per step size."""
    for (step, points), colour in zip(means.items(), SERIES, strict=False):
        if not points:
            continue
        x, mean, error, heard = zip(*points, strict=True)
        axes.errorbar(x, mean, error, color=colour, marker="o", markersize=3, capsize=2)
        axes.plot(x, heard, "-.", color=colour, linewidth=1)
        axes.annotate(
            f"step size {step}",
            (x[0], mean[0]),
            (4, 7),
            textcoords="offset points",
            fontsize=7,
            color=colour,
        )
    axes.plot([], [], "o-", markersize=3, color="#444444", label="iterations")
    axes.plot([], [], "-.", linewidth=1, color="#444444", label="broadcasts")


def _draw_streaks(axes: Axes, batches: Results, names: Mapping[str, str], k: int) -> None:
    """Draw the streaks on batches."""
    x = batches["iterations"]
    for (name, run), colour in zip(batches["runs"].items(), SERIES, strict=False):
        draw_band(axes, x, run["streak"], color=colour, label=names[name])
    axes.set(xlabel="iterations", ylabel="longest streak", ylim=(0, k * 1.04))
    axes.set_title("batches", fontsize=9)
    axes.legend(fontsize=7, frameon=False, loc="lower right")
