"""Figure of `frequent-directions`: the cost of shards, and the angle of each component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eigengame import metrics
from reproduction.base import Results
from reproduction.figures import COLOURS, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = {
    "sketch rows": (SERIES[3], "o", 1),
    "sketch SVD": (SERIES[1], "s", 1),
    "recovered": (SERIES[2], "D", 2),
    "EigenGame": (COLOURS["EigenGame"], "^", 3),
    "remembered": (COLOURS["remembered"], "v", 1),
}
"""Estimates of the components: colour, marker and number of passes."""


def draw_sketches(
    found: Results, costs: Mapping[str, Sequence[float]], best: tuple[float, float]
) -> Figure:
    """Draw the cost of shards, and the angle of each component on each spectrum."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9.6, 4.0), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.9))
    _draw_costs(left.subplots(), costs, best)
    left.legend(loc="outside lower center", ncols=1, fontsize=8.5)
    each = right.subplots(1, 2, sharey=True)
    for axes, (spectrum, one) in zip(each, found.items(), strict=True):
        _draw_angles(axes, one["kinds"])
        axes.set_title(f"{spectrum} spectrum")
    each[0].set_ylabel("mean angle (radians)")
    handles, _ = each[0].get_legend_handles_labels()
    right.legend(
        handles,
        [_label(found, kind) for kind in SHOWN],
        loc="outside lower center",
        ncols=2,
        fontsize=8.5,
        title=f"mean streak on the {' / '.join(found)} spectrum",
        title_fontsize=8.5,
    )
    return figure


def _label(found: Results, kind: str) -> str:
    """Return name, number of passes and the mean streak on each spectrum."""
    passes = SHOWN[kind][2]
    streaks = " / ".join(f"{one['kinds'][kind]['streak'][-1]:.1f}" for one in found.values())
    return f"{kind}, {passes} pass{'es' * (passes > 1)}: {streaks}"


def _draw_costs(
    axes: Axes, costs: Mapping[str, Sequence[float]], best: tuple[float, float]
) -> None:
    """Draw measured times and the model, which is its minimum times the mean of b/b* and b*/b."""
    x, (shards, least) = costs["shards"], best
    fine = np.geomspace(x[0], x[-1], 100)
    model = least * (fine / shards + shards / fine) / 2
    axes.plot(fine, model, color="#777777", label="model, $1/b + 2bl/n$")
    star = f"its minimum, $b^* = {shards:.1f}$"
    axes.plot(shards, least, "*", color="#000000", markersize=9, label=star)
    stacked: dict[str, Any] = {"color": SERIES[2], "label": "measured, all stacked"}
    axes.plot(x, costs["stacked"], "o", markersize=4.5, **stacked)
    pairs: dict[str, Any] = {"color": SERIES[3], "label": "measured, in pairs"}
    axes.plot(x, costs["in pairs"], "x:", linewidth=1, markersize=5, **pairs)
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"{one:.0f}" for one in x])
    axes.set(yscale="log", xlabel="shards $b$", ylabel="time over that of one shard")
    axes.set_title("cost of shards")


def _draw_angles(axes: Axes, kinds: Results) -> None:
    """Draw the mean angle of each component."""
    for kind, (colour, mark, _) in SHOWN.items():
        angles = kinds[kind]["angles"]
        x = range(1, 1 + len(angles))
        axes.plot(x, angles, mark + "-", color=colour, label=kind, markersize=4.5, linewidth=1)
    axes.axhline(metrics.STREAK_ANGLE, color="#777777", linewidth=1, zorder=0)
    axes.annotate(
        r"$\pi/8$",
        (1.01, metrics.STREAK_ANGLE),
        xycoords=axes.get_yaxis_transform(),
        fontsize=8.5,
        va="center",
    )
    axes.set(yscale="log", xlabel="component")
    axes.set_xticks([1, *range(len(angles) // 4, 1 + len(angles), len(angles) // 4)])
    axes.minorticks_off()
