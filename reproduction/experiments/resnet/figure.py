"""Figures of `resnet`: components by block, maps of the first block, scree plot and certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.base import Results
from reproduction.experiments.resnet.verdicts import SHOWN, block_sizes, relative_variance
from reproduction.figures import COLOURS, MARKERS, save

ACROSS = 8
"""Maps per row."""

CENTRED = "#777777"
"""Colour of the fit about the mean."""


def draw(results: Results) -> Any:
    """Draw components by block and mean maps of block 1 above, scree plot and certificate below."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(10.5, 7.0), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.0))
    blocks, maps = upper.subplots(1, 2, width_ratios=(1.05, 1.0))
    draw_blocks(blocks, results)
    draw_maps(maps, results)
    scree, angles = lower.subplots(1, 2)
    draw_scree(scree, results)
    draw_angles(angles, results)
    return figure


def extras(results: Results, folder: Path) -> None:
    """Write the components by block and the maps as larger figures, as in the paper's appendix."""
    from matplotlib.figure import Figure

    lines = -(-len(results["arrays"]["maps"]) // ACROSS)
    sizes = {"blocks": (10, 5.8), "maps": (10, 0.3 + 1.5 * lines)}
    for name, drawn in (("blocks", draw_blocks), ("maps", draw_maps)):
        figure: Any = Figure(figsize=sizes[name], layout="constrained")
        drawn(figure.subplots(), results)
        save(figure, folder, name)


def draw_blocks(axes: Any, results: Results) -> None:
    """Draw the extremes of each block of the first components, coloured by relative variance."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    stretches, sizes = results["stretches"], block_sizes(results)
    shown = min(SHOWN, results["size"]["k"])
    relative = relative_variance(results)[:shown]
    least = max(float(relative.min()), 1e-3)
    scale, colours = LogNorm(least, float(relative.max())), colormaps["cividis"]
    for row, components in enumerate(stretches.values()):
        most = np.abs(components).max()
        for i in range(shown):
            low, high = 0.45 * np.asarray(components[i]) / most - row
            colour = colours(scale(max(float(relative[i, row]), least)))
            axes.fill_between(
                np.linspace(i + 0.06, i + 0.94, len(low)),
                low,
                high,
                facecolor=colour,
                edgecolor="#444444",
                linewidth=0.4,
            )
        size = sizes[int(list(stretches)[row])]
        axes.text(shown + 0.05, -row, f"{size:,}", fontsize=7.5, va="center")
    axes.set_xticks(np.arange(shown) + 0.5, [f"PC {i + 1}" for i in range(shown)], fontsize=8)
    axes.set_yticks(-np.arange(len(stretches)), [f"Block {one}" for one in stretches], fontsize=8)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.set(xlim=(0, shown), ylim=(0.5 - len(stretches), 0.5))
    axes.grid(False)
    axes.spines[:].set_visible(False)
    bar = axes.figure.colorbar(
        ScalarMappable(scale, colours), ax=axes, location="bottom", shrink=0.6, aspect=40, pad=0.02
    )
    bar.set_label("mean square of a block's entries, over that of the component", fontsize=8)
    bar.ax.tick_params(labelsize=8)


def draw_maps(axes: Any, results: Results) -> None:
    """Draw the mean over the channels of block 1 for every component, each with its own contrast."""
    draw_wall(axes, results["arrays"]["maps"], ACROSS)
    axes.set_title("Block 1: mean over its channels, by component", fontsize=9)


def draw_wall(axes: Any, maps: np.ndarray, across: int, first: int = 1) -> None:
    """Draw maps (count, side, side) of 8 bits in rows, numbered from `first`, with even margins."""
    count, side, _ = maps.shape
    wide, high = side + max(1, side // 12), side + max(2, side // 3)
    lines = -(-count // across)
    wall = np.full((lines * high, across * wide - (wide - side)), np.nan)
    for i, one in enumerate(maps):
        top, left = high * (i // across) + high - side, wide * (i % across)
        wall[top : top + side, left : left + side] = one
        axes.text(
            left + side / 2, top - side / 25, f"{first + i}", fontsize=7.5, ha="center", va="bottom"
        )
    axes.imshow(wall, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.axis("off")


def draw_scree(axes: Any, results: Results) -> None:
    """Draw Rayleigh quotients and utilities."""
    number = np.arange(1, results["size"]["k"] + 1)
    played = {
        "remembered": results["readings"]["uncentred"],
        "EigenGame": results["EigenGame"],
    }
    for name, found in played.items():
        style: dict[str, Any] = {"color": COLOURS[name], "markersize": 4, "linewidth": 1.0}
        axes.semilogy(
            number,
            found["rayleigh"],
            f"{MARKERS[name]}-",
            label=f"{name}, Rayleigh quotient",
            **style,
        )
        utility = np.asarray(found["utility"], float)
        utility[utility <= 0] = np.nan
        axes.semilogy(number, utility, "x--", label=f"{name}, utility", **style)
    centred = results["readings"]["centred"]["rayleigh"]
    axes.semilogy(number, centred, ".:", color=CENTRED, label="remembered, about the mean")
    axes.set(xlabel="component", ylabel="mean over rows")
    axes.legend(fontsize=8)


def draw_angles(axes: Any, results: Results) -> None:
    """Draw the bounds of the certificates, and the angles of EigenGame by steps to the components."""
    number = np.arange(1, results["size"]["k"] + 1)
    plain, centred = (results["readings"][name] for name in ("uncentred", "centred"))
    steps, style = results["EigenGame"], {"markersize": 4, "linewidth": 1.0}
    bounds = plain["certificate"]["angle"], centred["certificate"]["angle"]
    colour, mark = COLOURS["remembered"], MARKERS["remembered"]
    axes.semilogy(number, bounds[0], f"{mark}-", color=colour, label="remembered, bound", **style)
    axes.semilogy(number, bounds[1], ".:", color=CENTRED, label="the same about the mean")
    colour, mark = COLOURS["EigenGame"], MARKERS["EigenGame"]
    axes.semilogy(
        number, steps["angle"], f"{mark}-", color=colour, label="EigenGame, angle", **style
    )
    # The first player has no parents, hence no penalty.
    ratio = np.asarray(steps["ratio"], float)
    ratio[ratio <= 0] = np.nan
    axes.semilogy(
        number, ratio, "x:", color=colour, label="EigenGame, penalty ratio (from PC 2)", **style
    )
    drawn = np.concatenate([*bounds, steps["angle"], ratio])
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    axes.set(xlabel="component", ylabel="radians, or a share", ylim=(drawn.min() / 2, 4))
    for angle, name in ((np.pi / 8, r"$\pi/8$"), (np.pi / 32, r"$\pi/32$")):
        axes.axhline(angle, color="#999999", linewidth=0.8, zorder=0)
        axes.annotate(
            name, (1.01, angle), xycoords=axes.get_yaxis_transform(), fontsize=8, va="center"
        )
    axes.legend(fontsize=8, loc="lower right")
