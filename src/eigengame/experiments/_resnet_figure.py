"""Figures of a network's components: by block, as maps of the first block, and how far to trust them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eigengame.experiments._base import Results
from eigengame.experiments._figures import COLOURS, save
from eigengame.experiments._resnet_claims import SHOWN, block_sizes, relative_variance

ACROSS = 8
"""Maps in a line."""


def whole(results: Results) -> Any:
    """Return all figures in one: components by block and maps above, scree plot and certificate below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    left, right = above.subfigures(1, 2)
    draw_blocks(left, results)
    draw_maps(right, results)
    scree, angles = below.subplots(1, 2)
    draw_scree(scree, results)
    draw_angles(angles, results)
    return figure


def enlarged(results: Results, folder: Path) -> list[Path]:
    """Write the two upper parts on their own."""
    from matplotlib.figure import Figure

    paths = []
    for name, drawn in (("blocks", draw_blocks), ("maps", draw_maps)):
        figure = Figure(figsize=(12, 7), layout="constrained")
        drawn(figure, results)
        paths += save(figure, folder, name)
    return paths


def draw_blocks(figure: Any, results: Results) -> None:
    """Draw each block of the first components as a line, coloured by its relative variance."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    stretches, sizes = results["drawn"]["stretches"], block_sizes(results)
    shown = min(SHOWN, results["size"]["k"])
    relative = relative_variance(results)[:shown]
    scale = LogNorm(max(float(relative.min()), 1e-3), float(relative.max()))
    colours = colormaps["coolwarm"]
    axes = figure.subplots(len(stretches), shown, squeeze=False, sharex=True)
    most = max(np.abs(part).max() for part in stretches.values())
    for row, (block, components) in enumerate(stretches.items()):
        for i in range(shown):
            low, high = components[i]
            one = axes[row, i]
            colour = colours(scale(max(float(relative[i, row]), scale.vmin)))
            one.fill_between(range(len(low)), low, high, color=colour, linewidth=0.5)
            # A root keeps the blocks with many features in sight beside those with few.
            one.set_yscale("function", functions=(_root, _square))
            one.set(xticks=[], yticks=[], ylim=(-most, most))
            one.grid(False)
            if not row:
                one.set_title(f"PC {i + 1}", fontsize=8)
        axes[row, 0].set_ylabel(f"Block {block}", fontsize=8)
        right = axes[row, -1].twinx()
        right.set_yticks([])
        right.set_ylabel(f"{sizes[int(block)]:,}", fontsize=7, rotation=0, ha="left", va="center")
    bar = figure.colorbar(
        ScalarMappable(scale, colours), ax=axes, location="bottom", shrink=0.6, aspect=40
    )
    bar.set_label("mean square of a block's entries, over that of the component", fontsize=8)


def draw_maps(figure: Any, results: Results) -> None:
    """Draw the mean over the channels of Block 1 for every component."""
    maps = results["drawn"]["maps"]
    lines = -(-len(maps) // ACROSS)
    axes = figure.subplots(lines, ACROSS, squeeze=False)
    for i, one in enumerate(axes.flat):
        one.axis("off")
        if i < len(maps):
            one.imshow(maps[i], cmap="gray", vmin=-99, vmax=99, interpolation="nearest")
            one.set_title(f"{i + 1}", fontsize=7, pad=2)
    figure.suptitle("Block 1, mean over its channels", fontsize=9)


def draw_scree(axes: Any, results: Results) -> None:
    """Draw Rayleigh quotients and utilities."""
    number = np.arange(1, results["size"]["k"] + 1)
    played = {
        "remembered": results["readings"]["uncentred"],
        "EigenGame": results["EigenGame"],
    }
    for name, found in played.items():
        colour, style = COLOURS[name], {"markersize": 3.5, "linewidth": 1.0}
        axes.semilogy(number, found["rayleigh"], "o-", color=colour, label=f"{name}, Rayleigh", **style)
        utility = np.maximum(found["utility"], 1e-12)
        axes.semilogy(number, utility, "x--", color=colour, label=f"{name}, utility", **style)
    centred = results["readings"]["centred"]["rayleigh"]
    axes.semilogy(number, centred, ".:", color="#999999", label="remembered, about the mean")
    lowest = min(*played["remembered"]["rayleigh"], *centred)
    axes.set(xlabel="component", ylabel="a row's share of M", ylim=(lowest / 3, None))
    axes.legend(fontsize=7)


def draw_angles(axes: Any, results: Results) -> None:
    """Draw the certificates' bounds, and how far EigenGame by steps is from the components."""
    number = np.arange(1, results["size"]["k"] + 1)
    plain, centred = (results["readings"][name] for name in ("uncentred", "centred"))
    steps, style = results["EigenGame"], {"markersize": 3.5, "linewidth": 1.0}
    colour = COLOURS["remembered"]
    axes.semilogy(
        number, plain["certificate"]["angle"], "o-", color=colour, label="remembered, bound", **style
    )
    axes.semilogy(
        number, centred["certificate"]["angle"], ".:", color="#999999", label="about the mean, bound"
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


def _root(values: Any) -> Any:
    return np.sign(values) * np.sqrt(np.abs(values))


def _square(values: Any) -> Any:
    return np.sign(values) * np.square(values)
