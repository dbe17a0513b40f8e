"""Figure of `bias`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproduction.base import Results
from reproduction.figures import COLOURS, label_of, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = ("#b8c9dd", "#7fa3cc", "#1f5fa8", "#0b2545")


def draw_bias(results: Results) -> Figure:
    """Draw bias against batch size, expected directions, and bias against memory."""
    figure, axes = panels(2, rows=2, width=3.6, height=2.9)
    drawn = (axes[0, 0], axes[0, 1], axes[1, 0])
    for one, draw in zip(drawn, (_draw_batches, _draw_cosines, _draw_memory), strict=True):
        draw(one, results)
    _draw_legends(axes[1, 1], drawn)
    return figure


def _draw_legends(place: Axes, drawn: Sequence[Axes]) -> None:
    """Show the legends of all panels in the place of a fourth: the panels have no room for them."""
    place.axis("off")
    tops = (1.06, 0.50, 0.26)
    for one, top, columns in zip(drawn, tops, (1, 2, 1), strict=True):
        legend = place.legend(
            *one.get_legend_handles_labels(),
            title=one.get_title(),
            title_fontsize=8,
            fontsize=7,
            ncols=columns,
            loc="upper left",
            bbox_to_anchor=(0, top),
            alignment="left",
            borderaxespad=0,
        )
        if (
            one is not drawn[-1]
        ):  # The last legend of an axes is kept; a new one replaces the others.
            place.add_artist(legend)


def _draw_batches(axes: Axes, results: Results) -> None:
    x, streams = results["size"]["batches"], results["streams"]
    exact = [results["exact"]["one row"] / m for m in x]
    axes.plot(x, exact, color="#999999", linewidth=0.9, label="exact, Gaussian rows")
    for stream, marker, name in (
        ("Gaussian", "o", "EigenGame"),
        ("Gaussian", "o", "EigenGame^R"),
        ("heavy-tailed", "^", "EigenGame"),
    ):
        seen = streams[stream][name]["paired"]
        label = label_of(name) + (f", {stream} rows" if stream != "Gaussian" else "")
        axes.errorbar(
            x, seen["bias"], seen["chance"], fmt=marker, markersize=4, color=COLOURS[name], label=label,
            markerfacecolor="none" if marker == "^" else None, linewidth=0.8,
        )  # fmt: skip
    for name, marker in (("GHA", "x"), ("mu", "+")):
        seen = streams["Gaussian"][name]["plain"]
        axes.plot(
            x, seen["mean"], marker, color=COLOURS[name], label=f"{label_of(name)}: mean of draws"
        )
    chance = streams["Gaussian"]["GHA"]["plain"]["chance"]
    axes.plot(x, chance, ":", color=COLOURS["GHA"], linewidth=1, label="standard error of these")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="rows in a batch",
        ylabel="bias / length of the direction",
    )
    axes.set_title("bias against batch size", fontsize=9)


def _draw_cosines(axes: Axes, results: Results) -> None:
    x = results["size"]["batches"]
    for i, colour, mark in zip((0, 2, 4, 7), SHADES, "os^D", strict=True):
        exact = [cosines[i] for cosines in results["exact"]["cosines"]]
        axes.plot(x, exact, color=colour, linewidth=1.2)
        axes.plot([], [], "-", marker=mark, markersize=4, color=colour, label=f"player {i + 1}")
        measured = [cosines[i] for cosines in results["cosines"]]
        axes.plot(x, measured, mark, markersize=4, color=colour)
    axes.axhline(0, color="#999999", linewidth=0.8)
    axes.set(xscale="log", xlabel="rows in a batch", ylim=(-1.05, 1.05))
    axes.set_ylabel("cosine to the full gradient")
    axes.set_title("direction of the expected gradient", fontsize=9)


def _draw_memory(axes: Axes, results: Results) -> None:
    memory = results["memory"]
    x = [n + memory["batch"] for n in memory["rows"]]
    exact = [results["exact"]["one row"] / m for m in x]
    axes.plot(x, exact, color="#999999", linewidth=0.9, label="one batch of all rows, exact")
    for (kept, seen), colour, mark in zip(memory["kept"].items(), SHADES[1:], "os^", strict=False):
        axes.errorbar(
            x, seen["bias"], seen["chance"], fmt=f"{mark}-", markersize=4, color=colour,
            linewidth=1.2, label=f"memory of {kept} players",
        )  # fmt: skip
        axes.plot(x, seen["tangent"], "--", color=colour, linewidth=0.9)
    axes.plot([], [], "--", color="#444444", linewidth=0.9, label="tangent part")
    axes.set(xscale="log", yscale="log", xlabel=f"rows seen, in batches of {memory['batch']}")
    axes.set_ylabel("bias / length of the gradient")
    axes.set_title("bias under a memory", fontsize=9)
