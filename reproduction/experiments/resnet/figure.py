"""Figures of `resnet`: components by block, maps of the first block, scree plot and certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.base import Results
from reproduction.experiments.resnet.text import SHOWN, block_sizes, relative_variance
from reproduction.figures import COLOURS, save

ACROSS = 8
"""Maps per row."""


def draw(results: Results) -> Any:
    """Draw components by block and mean maps of block 1 above, scree plot and certificate below."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(13, 8.6), layout="constrained")
    (blocks, maps), (scree, angles) = figure.subplots(2, 2, height_ratios=(1.2, 1))
    draw_blocks(blocks, results)
    draw_maps(maps, results)
    draw_scree(scree, results)
    draw_angles(angles, results)
    return figure


def extras(results: Results, folder: Path) -> None:
    """Write the components by block and the maps as larger figures, as in the paper's appendix."""
    from matplotlib.figure import Figure

    for name, drawn in (("blocks", draw_blocks), ("maps", draw_maps)):
        figure: Any = Figure(figsize=(12, 7), layout="constrained")
        drawn(figure.subplots(), results)
        save(figure, folder, name)


def draw_blocks(axes: Any, results: Results) -> None:
    """Draw the extremes of each block of the first components, coloured by relative variance."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    stretches, sizes = results["drawn"]["stretches"], block_sizes(results)
    shown = min(SHOWN, results["size"]["k"])
    relative = relative_variance(results)[:shown]
    least = max(float(relative.min()), 1e-3)
    scale, colours = LogNorm(least, float(relative.max())), colormaps["coolwarm"]
    for row, components in enumerate(stretches.values()):
        most = np.abs(components).max()
        for i in range(shown):
            low, high = 0.45 * np.asarray(components[i]) / most - row
            colour = colours(scale(max(float(relative[i, row]), least)))
            axes.fill_between(
                np.linspace(i + 0.06, i + 0.94, len(low)), low, high, color=colour, linewidth=0.5
            )
        size = sizes[int(list(stretches)[row])]
        axes.text(shown + 0.05, -row, f"{size:,}", fontsize=7, va="center")
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


def draw_maps(axes: Any, results: Results) -> None:
    """Draw the mean over the channels of block 1 for every component, in rows of eight."""
    maps = np.asarray(results["drawn"]["maps"], float)
    count, side, _ = maps.shape
    step, lines = side + -(-side // 4), -(-count // ACROSS)
    wall = np.full((lines * step, ACROSS * step), np.nan)
    for i, one in enumerate(maps):
        top, left = step * (i // ACROSS), step * (i % ACROSS)
        wall[top : top + side, left : left + side] = one
        axes.text(left + side / 2, top - 1, f"{i + 1}", fontsize=7, ha="center", va="bottom")
    axes.imshow(wall, cmap="gray", vmin=-99, vmax=99, interpolation="nearest")
    axes.axis("off")
    axes.set_title("Block 1, mean over its channels, by component", fontsize=9, pad=12)


def draw_scree(axes: Any, results: Results) -> None:
    """Draw Rayleigh quotients and utilities."""
    number = np.arange(1, results["size"]["k"] + 1)
    played = {
        "remembered": results["readings"]["uncentred"],
        "EigenGame": results["EigenGame"],
    }
    for name, found in played.items():
        colour, style = COLOURS[name], {"markersize": 3.5, "linewidth": 1.0}
        axes.semilogy(
            number, found["rayleigh"], "o-", color=colour, label=f"{name}, Rayleigh", **style
        )
        utility = np.maximum(found["utility"], 1e-12)
        axes.semilogy(number, utility, "x--", color=colour, label=f"{name}, utility", **style)
    centred = results["readings"]["centred"]["rayleigh"]
    axes.semilogy(number, centred, ".:", color="#999999", label="remembered, about the mean")
    lowest = min(*played["remembered"]["rayleigh"], *centred)
    axes.set(xlabel="component", ylabel="mean over rows", ylim=(lowest / 3, None))
    axes.legend(fontsize=7)


def draw_angles(axes: Any, results: Results) -> None:
    """Draw the bounds of the certificates, and the angles of EigenGame by steps to the components."""
    number = np.arange(1, results["size"]["k"] + 1)
    plain, centred = (results["readings"][name] for name in ("uncentred", "centred"))
    steps, style = results["EigenGame"], {"markersize": 3.5, "linewidth": 1.0}
    colour = COLOURS["remembered"]
    axes.semilogy(
        number,
        plain["certificate"]["angle"],
        "o-",
        color=colour,
        label="remembered, bound",
        **style,
    )
    axes.semilogy(
        number,
        centred["certificate"]["angle"],
        ".:",
        color="#999999",
        label="about the mean, bound",
    )
    colour = COLOURS["EigenGame"]
    axes.semilogy(number, steps["angle"], "o-", color=colour, label="EigenGame, angle", **style)
    ratio = np.maximum(steps["ratio"], 1e-6)
    axes.semilogy(number, ratio, "x:", color=colour, label="EigenGame, penalty ratio", **style)
    for angle, name in ((np.pi / 8, "pi/8"), (np.pi / 32, "pi/32")):
        axes.axhline(angle, color="#999999", linewidth=0.8)
        axes.text(number[-1], angle * 1.1, name, fontsize=7, color="#777777", ha="right")
    axes.set(xlabel="component", ylabel="radians, or a share", ylim=(1e-6, 3))
    axes.legend(fontsize=7, loc="lower right")
