"""Figure of `small-resnet`: mean maps of each method side by side, and angles to both truths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eigengame import metrics
from reproduction.base import Results
from reproduction.experiments.small_resnet.text import duration
from reproduction.figures import COLOURS, save

LABELS = {
    "certified": "certified",
    "deflation": "deflation",
    "EigenGame, short": "EigenGame, {passes} passes",
    "EigenGame, long": "EigenGame, {passes} passes",
    "FD": "Frequent Directions",
}

STYLES = {
    "certified": ("#000000", "*", "-"),
    "deflation": (COLOURS["Oja"], "D", "-"),
    "EigenGame, short": (COLOURS["EigenGame"], "o", ":"),
    "EigenGame, long": (COLOURS["EigenGame"], "o", "-"),
    "FD": (COLOURS["GHA"], "s", "-"),
}
"""Colour, marker and line of each method."""


def label_of(results: Results, name: str) -> str:
    """Return the label of a method, with its number of passes if there are two of them."""
    return LABELS[name].format(passes=results["methods"][name]["passes"])


def draw(results: Results) -> Any:
    """Draw maps above, and angles to the certified components and to those by deflation below."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9.0, 8.3), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.25, 1.0))
    draw_maps(upper.subplots(), results)
    left, right = lower.subplots(1, 2, sharey=True)
    for axes, truth in ((left, "certified"), (right, "deflation")):
        draw_angles(axes, results, truth)
    left.set_ylabel("angle (radians)")
    handles, labels = left.get_legend_handles_labels()
    more = dict(zip(*reversed(right.get_legend_handles_labels()), strict=True))
    both = more | dict(zip(labels, handles, strict=True))
    lower.legend(both.values(), both.keys(), loc="outside lower center", ncols=3, fontsize=8.5)
    return figure


def extras(results: Results, folder: Path) -> None:
    """Write the maps as a larger figure."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(12, 6.4), layout="constrained")
    draw_maps(figure.subplots(), results)
    save(figure, folder, "maps")


def draw_maps(axes: Any, results: Results) -> None:
    """Draw the mean maps of block 1, one line for each method, each map with its own contrast."""
    maps = results["arrays"]["maps"]
    lines, count, side, _ = maps.shape
    step = side + max(1, side // 12)
    wall = np.full((lines * step, count * step), np.nan)
    for i in range(lines):
        for j in range(count):
            wall[i * step : i * step + side, j * step : j * step + side] = maps[i, j]
    axes.imshow(
        wall[: lines * step - step + side, : count * step - step + side],
        cmap="gray",
        vmin=0,
        vmax=255,
        interpolation="nearest",
    )
    names = [label_of(results, name).replace(", ", ",\n") for name in results["methods"]]
    names = [name.replace("Frequent ", "Frequent\n") for name in names]
    axes.set_yticks(np.arange(lines) * step + side / 2, names, fontsize=8.5)
    numbers = [f"PC {number}" for number in results["section"]]
    axes.set_xticks(np.arange(count) * step + side / 2, numbers, fontsize=8.5)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.grid(False)
    axes.spines[:].set_visible(False)


def draw_angles(axes: Any, results: Results, truth: str) -> None:
    """Draw the angle of each component to the one of a truth."""
    number = np.arange(1, results["size"]["k"] + 1)
    for name, found in results["methods"].items():
        if name == truth:
            continue
        colour, mark, line = STYLES[name]
        axes.semilogy(
            number,
            np.maximum(found["angle"][truth], 1e-6),
            mark + line,
            color=colour,
            markersize=4,
            linewidth=1.1,
            label=f"{label_of(results, name)} ({duration(found['seconds'])})",
        )
    axes.axhline(metrics.STREAK_ANGLE, color="#999999", linewidth=0.8, zorder=0)
    axes.annotate(
        r"$\pi/8$",
        (1.01, metrics.STREAK_ANGLE),
        xycoords=axes.get_yaxis_transform(),
        fontsize=8.5,
        va="center",
    )
    whose = "the certified components" if truth == "certified" else "those by deflation"
    axes.set_xticks([1, *range(5, len(number) + 1, 5)] if len(number) > 5 else number)
    axes.set_xlabel("component")
    axes.set_title(f"angles to {whose}", fontsize=9.5)
