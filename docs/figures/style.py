"""Drawing of each figure twice, for light and for dark pages, with a transparent background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

FOLDER = Path(__file__).parent


class Theme(NamedTuple):
    """Colours of a figure."""

    name: str
    text: str
    muted: str
    faint: str
    good: str
    poor: str
    players: tuple[str, ...]


THEMES = (
    Theme(
        "light",
        "#222222",
        "#6b7180",
        "#b8bcc6",
        "#1b7f4d",
        "#c2571a",
        ("#2f5fc4", "#c2571a", "#1b7f4d"),
    ),
    Theme(
        "dark",
        "#e6e8ee",
        "#9aa1b0",
        "#666c7a",
        "#58cf94",
        "#f0965a",
        ("#86aaff", "#f0965a", "#58cf94"),
    ),
)


def draw(name: str, figure_of: Callable[[Theme], Figure]) -> None:
    """Write ``name-light.svg`` and ``name-dark.svg`` beside this file."""
    matplotlib.use("Agg")
    for theme in THEMES:
        colours = dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
            theme.text,
        )
        options = {
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "svg.hashsalt": name,  # the same file from the same numbers
        }
        with plt.rc_context(colours | options):
            figure = figure_of(theme)
            path = FOLDER / f"{name}-{theme.name}.svg"
            figure.savefig(path, transparent=True, metadata={"Date": None})
            plt.close(figure)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
