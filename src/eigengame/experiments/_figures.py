"""Figures in the paper's form: solid best step size, dotted ten times it, dashed a tenth, shaded errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    "Frequent Directions": "#4b9aa8",
}
"""One colour for each algorithm, in every figure."""

STYLES = {"best": "-", "x10": ":", "x0.1": "--"}
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
    """Return a context in which all that is drawn has the house's style."""
    import matplotlib as mpl

    return mpl.rc_context(STYLE)


def panels(count: int, *, rows: int = 1, width: float = 4.2, height: float = 3.1) -> Any:
    """Return a figure and its axes, an array of shape (rows, count)."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width * count, height * rows), layout="constrained")
        return figure, figure.subplots(rows, count, squeeze=False)


def named(name: str) -> str:
    """Return an algorithm's name as figures write it."""
    return name.replace("^R", "$^R$").replace("mu", r"$\mu$-EigenGame", 1 if name == "mu" else 0)


def draw_runs(axes: Axes, panel: Mapping[str, Any], kind: str = "streak", unit: str = "ms") -> None:
    """Draw the curves of every run of a panel: see `_streaks.panel_of` for what it holds."""
    for name, run in panel["runs"].items():
        x = run["iterations"] if "iterations" in run else panel["iterations"]
        colour = COLOURS.get(name)
        for which, curves in run["curves"].items():
            mean, error = curves[kind]["mean"], curves[kind]["error"]
            label = f"{named(name)} ({run['runtime']:.3g} {unit})" if which == "best" else None
            (line,) = axes.plot(
                x,
                mean,
                STYLES[which],
                color=colour,
                label=label,
                linewidth=1.6 if which == "best" else 0.8,
            )
            if which == "best":
                low = [m - e for m, e in zip(mean, error, strict=True)]
                high = [m + e for m, e in zip(mean, error, strict=True)]
                axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xlabel("iterations")
    axes.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.4)


def save(figure: Figure, folder: Path, name: str = "figure") -> list[Path]:
    """Write a figure as PNG and SVG; the same numbers give the same files."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with styled():
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
