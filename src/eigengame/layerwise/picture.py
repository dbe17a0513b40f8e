"""The picture of the fits of all layers, as SVG: three panels with a common axis of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

ROW, LEFT, PANEL, GAP, TOP = 18, 12, 190, 34, 46
"""Height of a layer, margins, and width of a panel, in pixels."""

LETTER = 6.6
"""Width of a letter of the names."""

BARS = ("#c6dbef", "#6baed6", "#2171b5")
"""Colours of the share that all, half and one of the components explain."""


def draw_layers(figures: Sequence[Mapping[str, Any]], shares: Mapping[str, np.ndarray]) -> str:
    """Return the picture.

    Parameters
    ----------
    figures : sequence of dict
        The rows of `LayerFits.table`.
    shares : mapping of arrays of shape (k,)
        Share of the variance that the first components of each layer explain together.
    """
    names = [str(one["layer"]) for one in figures]
    left = LEFT + LETTER * max(map(len, names)) + 10
    width, height = left + 3 * (PANEL + GAP), TOP + ROW * len(names) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" font-family="sans-serif" font-size="11" role="img">',
        f"<title>Principal components of {len(names)} layers</title>",
        f'<rect width="{width:.0f}" height="{height}" fill="white"/>',
    ]
    starts = [left + i * (PANEL + GAP) for i in range(3)]
    dimensions = [one["effective_dimension"] or 0.0 for one in figures]
    most = max(*dimensions, 1.0) if len(dimensions) > 1 else max(dimensions[0], 1.0)
    k = max(int(one["components"]) for one in figures)
    heads = (
        ("explained variance", "0", "100 %"),
        ("components certified", "0", str(k)),
        ("effective dimension", "0", f"{most:.0f}"),
    )
    bottom = TOP + ROW * len(names)
    for start, (title, low, high) in zip(starts, heads, strict=True):
        parts.append(f'<text x="{start:.1f}" y="20" font-weight="bold">{title}</text>')
        parts.append(f'<text x="{start:.1f}" y="{bottom + 16}">{low}</text>')
        parts.append(
            f'<text x="{start + PANEL:.1f}" y="{bottom + 16}" text-anchor="end">{high}</text>'
        )
        parts.append(
            f'<rect x="{start:.1f}" y="{TOP - 8}" width="{PANEL}" height="{bottom - TOP + 8}" fill="none" '
            'stroke="#bbb"/>'
        )
    for i, one in enumerate(figures):
        y, total = TOP + i * ROW, shares[names[i]]
        parts.append(
            f'<text x="{left - 8:.1f}" y="{y + 9}" text-anchor="end">{escape(names[i])}</text>'
        )
        counts = (len(total), max(1, len(total) // 2), 1)
        for count, colour in zip(counts, BARS, strict=True):
            share = float(np.clip(total[count - 1], 0, 1))
            label = f"first {count}: {share:.1%}"
            parts.append(_bar(starts[0], y, share, colour, label))
        certified = int(one["certified"])
        label = f"{certified} of {one['components']}"
        parts.append(_bar(starts[1], y, certified / k, "#74c476", label))
        dimension = one["effective_dimension"]
        if dimension is not None:
            parts.append(_bar(starts[2], y, dimension / most, "#9e9ac8", f"{dimension:.1f}"))
    return "\n".join([*parts, "</svg>\n"])


def _bar(start: float, y: int, share: float, colour: str, label: str) -> str:
    """Return a bar with a label that browsers show on hover."""
    return (
        f'<rect x="{start:.1f}" y="{y}" width="{PANEL * share:.1f}" height="{ROW - 7}" fill="{colour}">'
        f"<title>{escape(label)}</title></rect>"
    )
