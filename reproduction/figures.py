"""Shared parts of the figures: colours, style, panels, and curves with a band of one standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "EigenGame": "#1f5fa8",
    "EigenGame^R": "#d9822b",
    "GHA": "#3a923a",
    "Oja": "#b5382f",
    "Krasulina": "#7a5ab5",
    "mu": "#8c6d46",
    "best response": "#222222",
    "remembered": "#c9479e",
}
"""One colour for each algorithm, in every figure."""

SERIES = ("#1f5fa8", "#d9822b", "#3a923a", "#b5382f")
"""Colours of series that are not algorithms."""

LINES = {"best": "-", "x10": ":", "x0.1": "--"}
"""Line styles of the paper: best step size, ten times it, a tenth."""

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "eigengame",
    "svg.fonttype": "none",
}


def styled() -> Any:
    """Return a context manager that applies the shared style."""
    import matplotlib as mpl

    return mpl.rc_context(STYLE)


def panels(count: int, *, rows: int = 1, width: float = 4.2, height: float = 3.1) -> Any:
    """Return a figure and its axes, an array of shape (rows, count)."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width * count, height * rows), layout="constrained")
        return figure, figure.subplots(rows, count, squeeze=False)


def label_of(name: str) -> str:
    """Return the label of an algorithm in figures."""
    return r"$\mu$-EigenGame" if name == "mu" else name.replace("^R", "$^R$")


def draw_band(axes: Axes, x: Sequence[float], curve: Mapping[str, Any], **style: Any) -> None:
    """Draw a mean curve with a shaded band of one standard error."""
    mean, error = np.asarray(curve["mean"]), np.asarray(curve["error"])
    (line,) = axes.plot(x, mean, **style)
    axes.fill_between(x, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)


def draw_runs(axes: Axes, panel: Mapping[str, Any], kind: str = "streak", unit: str = "ms") -> None:
    """Draw the curves of every algorithm of a panel, with runtimes in the legend.

    `panel["runs"][name]` has "iterations", "runtime" and "curves": for each of "best", "x10" and "x0.1" and
    each kind of curve, its "mean" and "error".
    """
    for name, run in panel["runs"].items():
        for which, curves in run["curves"].items():
            style: dict[str, Any] = {"color": COLOURS[name], "linestyle": LINES[which]}
            if which == "best":
                label = f"{label_of(name)} ({run['runtime']:.3g} {unit})"
                draw_band(
                    axes, run["iterations"], curves[kind], label=label, linewidth=1.6, **style
                )
            else:
                axes.plot(run["iterations"], curves[kind]["mean"], linewidth=0.8, **style)
    axes.set_xlabel("iterations")
    axes.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.4)


def save(figure: Figure, folder: Path, name: str = "figure") -> None:
    """Write a figure as PNG and SVG. Equal numbers give equal files."""
    with styled():
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
