"""Shared parts of the figures: colours, style, panels, and curves with a band of one standard error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "EigenGame": "#0072b2",
    "EigenGame^R": "#e69f00",
    "GHA": "#009e73",
    "Oja": "#d55e00",
    "Krasulina": "#cc79a7",
    "mu": "#56b4e9",
    "best response": "#000000",
    "remembered": "#6a3d9a",
}
"""One colour for each algorithm, in every figure. Colour-blind readers can tell these apart (Okabe and Ito)."""

MARKERS = dict(zip(COLOURS, "os^DvPX*", strict=True))
"""One marker for each algorithm, which tells curves apart in greyscale."""

SERIES = ("#0072b2", "#e69f00", "#009e73", "#d55e00")
"""Colours of series that are not algorithms."""

LINES: dict[str, Any] = {"best": "-", "x10": ":", "x0.1": "--"}
"""Line styles of the paper: best step size, ten times it, a tenth."""

LINE_LABELS = {
    "best": "best step size",
    "x10": "ten times the best step size",
    "x0.1": "a tenth of the best step size",
}

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


def panels(
    count: int, *, rows: int = 1, width: float = 4.2, height: float = 3.1, shared: bool = False
) -> Any:
    """Return a figure and its axes, an array of shape (rows, count).

    With `shared`, the panels of a column have one axis of iterations, labelled below the last of them.
    """
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width * count, height * rows), layout="constrained")
        return figure, figure.subplots(
            rows, count, squeeze=False, sharex="col" if shared else False
        )


def label_of(name: str) -> str:
    """Return the label of an algorithm in figures."""
    return r"$\mu$-EigenGame" if name == "mu" else name.replace("^R", "$^R$")


def draw_band(axes: Axes, x: Any, curve: Mapping[str, Any], **style: Any) -> None:
    """Draw a mean curve with a shaded band of one standard error."""
    mean, error = np.asarray(curve["mean"]), np.asarray(curve["error"])
    (line,) = axes.plot(x, mean, **style)
    axes.fill_between(x, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)


def mark_level(axes: Axes, level: float, label: str = "") -> None:
    """Draw a dotted line at a level behind the data, with its label in the margin to the right of the panel."""
    # Above the grid, below the curves.
    axes.axhline(level, color="#555555", linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
    if label:
        axes.annotate(
            label,
            (1.02, level),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
            color="#555555",
            annotation_clip=False,
        )


def draw_runs(
    axes: Axes,
    panel: Mapping[str, Any],
    kind: str = "streak",
    steps: Sequence[str] = ("best",),
    *,
    per: float = 1.0,
) -> None:
    """Draw the curves of every algorithm of a panel over a logarithmic axis of iterations.

    `panel["runs"][name]` has "iterations" and "curves": for each of "best", "x10" and "x0.1" and each kind of
    curve, its "mean" and "error".

    Parameters
    ----------
    axes : Axes
    panel : dict
    kind : str
        Kind of curve.
    steps : sequence of str
        Step sizes to draw: keys of `LINES`. Only the best one has a band.
    per : float
        Iterations per unit of the axis, such as those of a pass.
    """
    for place, (name, run) in enumerate(panel["runs"].items()):
        x = np.asarray(run["iterations"]) / per
        for step in (one for one in steps if one in run["curves"]):
            style: dict[str, Any] = {"color": COLOURS[name], "linestyle": LINES[step]}
            style |= {"marker": MARKERS[name], "markersize": 4.5, "markevery": spread(x, place)}
            if step == "best":
                draw_band(axes, x, run["curves"][step][kind], linewidth=1.4, **style)
            else:
                axes.plot(x, run["curves"][step][kind]["mean"], linewidth=0.9, **style)
    axes.set_xscale("log")


def spread(x: Any, place: int, *, of: int = len(COLOURS), count: int = 5) -> list[int]:
    """Return indices for markers at equal distances on a logarithmic axis.

    Each of the `of` places has an offset of its own, so that markers of coinciding curves do not cover each other.
    """
    x = np.asarray(x)
    share = (np.arange(count) + 0.3 + 0.7 * (place % of) / of) / count
    wanted = x[0] * (x[-1] / x[0]) ** share
    return sorted({int(np.abs(x - one).argmin()) for one in wanted})


def add_legend(figure: Figure, names: Iterable[str], steps: Sequence[str] = ("best",)) -> None:
    """Add one legend below all panels: a colour and a marker per algorithm, then the line styles."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=COLOURS[name], marker=MARKERS[name], markersize=5, label=label_of(name)
        )
        for name in names
    ]
    if len(steps) > 1:
        handles += [
            Line2D([], [], color="#555555", linestyle=LINES[step], label=LINE_LABELS[step])
            for step in steps
        ]
    columns = min(len(handles), max(2, int(figure.get_figwidth() / 1.7)))
    if len(steps) > 1:
        # Columns are filled one after the other: the line styles are the last one.
        columns = -(-len(handles) // len(steps))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8)


def save(figure: Figure, folder: Path, name: str = "figure") -> None:
    """Write a figure as PNG and SVG. Equal numbers give equal files."""
    with styled():
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
