"""Figure of `sequential`: one run, iterations and their bounds, and angles on scaled data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reproduction.base import Results
from reproduction.figures import SERIES, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

K = 3
"""Players."""
TOLERANCE = 0.1
"""Tolerance of the run in the figure and of the runs on scaled data, in radians."""
PRINTED, SCALE_FREE = r"$t_i$ as printed", r"$t_i$, scale-free"


def draw_turns(results: Results) -> Figure:
    """Draw one run, iterations and their bounds, and angles on scaled data."""
    figure, axes = panels(3, width=2.7, height=3.2)
    _draw_course(axes[0, 0], results["course"])
    _draw_bounds(axes[0, 1], results["tolerances"])
    _draw_scales(axes[0, 2], results["scales"])
    labelled = {
        label: handle
        for one in axes[0]
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        labelled.values(), labelled.keys(), loc="outside lower center", ncols=4, fontsize=8
    )
    return figure


def _draw_course(axes: Axes, course: Results) -> None:
    """Draw the angles of one trial, with the turn of each player in bold."""
    x, angles = np.asarray(course["iterations"]), np.asarray(course["angles"])
    begins = np.concatenate([[0], np.cumsum(course["used"])])
    for i, (colour, style) in enumerate(zip(SERIES[:K], ("-", "--", ":"), strict=True)):
        own = (x > begins[i]) & (x <= begins[i + 1])
        axes.semilogy(x, angles[:, i], color=colour, linewidth=0.8, alpha=0.6)
        axes.semilogy(
            x[own], angles[own, i], style, color=colour, linewidth=2.4, label=f"player {i + 1}"
        )
        axes.axvline(begins[i + 1], color="#bbbbbb", linewidth=0.8)
    axes.axhline(TOLERANCE, color="#777777", linestyle="--", linewidth=0.8, label=r"$\theta_{tol}$")
    axes.set(xlabel="iterations", ylabel="angle (radians)")
    axes.set_title(rf"turn by turn, $\theta_{{tol}}$ = {TOLERANCE:g}", fontsize=9)


def _draw_bounds(axes: Axes, tolerances: list[Results]) -> None:
    """Draw iterations and their bounds against the tolerance."""
    x = [one["tolerance"] for one in tolerances]
    lines = {
        r"$T_k$": ([one["total bound"] for one in tolerances], SERIES[3], "^-"),
        SCALE_FREE: (totals(tolerances, "bounds"), SERIES[0], "s-"),
        PRINTED: (totals(tolerances, "printed bounds"), SERIES[1], "D--"),
        "iterations used": (totals(tolerances, "used"), "#000000", "o-"),
    }
    for label, (y, colour, mark) in lines.items():
        axes.loglog(x, y, mark, color=colour, markersize=4, label=label)
    axes.set(xlabel=r"$\theta_{tol}$ (radians)", ylabel="iterations, all players", ylim=(10, None))
    axes.set_title("iterations and their bounds", fontsize=9)


def _draw_scales(axes: Axes, scales: list[Results]) -> None:
    """Draw the largest final angle against the scale of M."""
    x = [one["scale"] for one in scales]
    for rule, label, colour, style in (
        ("literal", PRINTED, SERIES[1], "D--"),
        ("scale-free", SCALE_FREE, SERIES[0], "s-"),
    ):
        angles = [one[rule]["angle"] for one in scales]
        axes.loglog(x, angles, style, color=colour, markersize=4, label=label)
    axes.axhline(TOLERANCE, color="#777777", linestyle="--", linewidth=0.8, label=r"$\theta_{tol}$")
    axes.set(xlabel="M multiplied by", ylabel="largest angle (radians)")
    axes.set_title("the same data, scaled", fontsize=9)


def totals(tolerances: list[Results], kind: str) -> list[float]:
    """Return iterations summed over players, averaged over trials."""
    return [float(np.sum(one[kind], axis=1).mean()) for one in tolerances]
