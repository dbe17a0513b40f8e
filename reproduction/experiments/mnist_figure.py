"""Figure of `mnist`: streaks and subspace distances in both readings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.base import Results
from reproduction.curves import final
from reproduction.figures import COLOURS, add_legend, draw_runs, label_of, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOWEST = 1.5e-4
"""Lower end of the axis of distances; curves that end below it have a note."""


def draw_digits(results: Results) -> Figure:
    """Draw one column per batch size; streaks and distances of each reading are rows."""
    readings = results["readings"]
    batches = list(next(iter(readings.values()))["panels"])
    figure, axes = panels(len(batches), rows=2 * len(readings), width=2.6, height=2.0)
    for place, (reading, found) in enumerate(readings.items()):
        upper, lower = axes[2 * place], axes[2 * place + 1]
        for streak, distance, batch in zip(upper, lower, batches, strict=True):
            panel, per = found["panels"][batch], results["size"]["rows"] // int(batch)
            draw_runs(streak, panel, "streak", per=per)
            draw_runs(distance, panel, "distance", per=per)
            streak.set_ylim(0, results["components"] * 1.04)
            distance.set(yscale="log", ylim=(LOWEST, 1.1))
            _note_below(distance, panel)
            streak.set_title(f"{reading}, batches of {batch}", fontsize=9)
        upper[0].set_ylabel("longest streak")
        lower[0].set_ylabel("subspace distance")
    for one in axes[-1]:
        one.set_xlabel("passes")
    add_legend(figure, next(iter(readings.values()))["panels"][batches[0]]["runs"])
    return figure


def _note_below(axes: Axes, panel: Results) -> None:
    """Note the final value of each curve that ends below the axis."""
    ends = {name: final(panel, name, "distance") for name in panel["runs"]}
    below = {name: end for name, end in ends.items() if end < LOWEST}
    for place, (name, end) in enumerate(below.items()):
        axes.text(
            0.99,
            0.03 + 0.1 * place,
            f"{label_of(name)}: {end:.0e}",
            fontsize=7,
            ha="right",
            color=COLOURS[name],
            transform=axes.transAxes,
        )
