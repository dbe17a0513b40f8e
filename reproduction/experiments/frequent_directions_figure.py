"""Figure of `frequent-directions`: the cost of shards, and the angle of each component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eigengame import metrics
from reproduction.base import Results
from reproduction.figures import COLOURS, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = {
    "sketch rows": ("#a9d3da", "o", 1),
    "sketch SVD": ("#4b9aa8", "s", 1),
    "recovered": ("#1d5560", "D", 2),
    "EigenGame": (COLOURS["EigenGame"], "^", 3),
    "remembered": (COLOURS["remembered"], "v", 1),
}
"""Estimates of the components: colour, marker and number of passes."""


def draw_sketches(
    found: Results, costs: Mapping[str, Sequence[float]], best: tuple[float, float]
) -> Figure:
    """Draw the cost of shards, and the angle of each component on each spectrum."""
    figure, axes = panels(3, width=3.9, height=3.3)
    _draw_costs(axes[0, 0], costs, best)
    for one, (spectrum, each) in zip(axes[0, 1:], found.items(), strict=True):
        _draw_angles(one, each["kinds"])
        one.set_title(f"{spectrum} spectrum")
    axes[0, 1].set_ylabel("mean angle (radians)")
    return figure


def _draw_costs(
    axes: Axes, costs: Mapping[str, Sequence[float]], best: tuple[float, float]
) -> None:
    """Draw measured times and the model, which is its minimum times the mean of b/b* and b*/b."""
    x, (shards, least) = costs["shards"], best
    fine = np.geomspace(x[0], x[-1], 100)
    model = least * (fine / shards + shards / fine) / 2
    axes.plot(fine, model, color="#777777", label="$1/b + 2bl/n$")
    axes.plot(shards, least, "*", color="#b5382f", markersize=9, label=f"$b^* = {shards:.1f}$")
    stacked: dict[str, Any] = {
        "color": "#1d5560",
        "markersize": 4,
        "label": "measured, all stacked",
    }
    axes.plot(x, costs["stacked"], "o", **stacked)
    pairs: dict[str, Any] = {"color": "#d9822b", "markersize": 5, "label": "measured, in pairs"}
    axes.plot(x, costs["in pairs"], "x:", linewidth=0.8, **pairs)
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"{one:.0f}" for one in x])
    axes.set(yscale="log", xlabel="shards $b$", ylabel="time over that of one shard")
    axes.set_title("cost of shards")
    axes.legend(fontsize=7, frameon=False)


def _draw_angles(axes: Axes, kinds: Results) -> None:
    """Draw the mean angle of each component, with the mean streak in the legend."""
    for kind, (colour, mark, passes) in SHOWN.items():
        angles, streak = kinds[kind]["angles"], kinds[kind]["streak"][-1]
        label = f"{streak:.1f}  {kind}, {passes} pass{'es' * (passes > 1)}"
        x = range(1, 1 + len(angles))
        axes.plot(x, angles, mark + "-", color=colour, label=label, markersize=4, linewidth=1)
    axes.axhline(metrics.STREAK_ANGLE, color="#777777", linewidth=1, zorder=0)
    axes.set(yscale="log", xlabel="component", yticks=[1e-3, 1e-2, 1e-1, 1], ylim=(1e-4, 300))
    axes.set_xticks([1, *range(len(angles) // 4, 1 + len(angles), len(angles) // 4)])
    axes.minorticks_off()
    legend: dict[str, Any] = {"title": "mean streak", "title_fontsize": 7, "alignment": "left"}
    axes.legend(fontsize=7, frameon=False, loc="upper left", labelspacing=0.3, **legend)
