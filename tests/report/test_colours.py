"""Colours of labels: distinct for every common kind of colour vision, in light and dark."""

import re
from pathlib import Path

import numpy as np
import pytest

from eigengame.report import page

VISION = {
    "normal": np.eye(3).ravel(),
    "protanopia": [
        0.152286,
        1.052583,
        -0.204868,
        0.114503,
        0.786281,
        0.099216,
        -0.003882,
        -0.048116,
        1.051998,
    ],
    "deuteranopia": [
        0.367322,
        0.860646,
        -0.227968,
        0.280085,
        0.672501,
        0.047413,
        -0.011820,
        0.042940,
        0.968881,
    ],
    "tritanopia": [
        1.255528,
        -0.076749,
        -0.178779,
        -0.078411,
        0.930809,
        0.147602,
        0.004733,
        0.691367,
        0.303900,
    ],
}
"""Simulation of colour vision in linear RGB (Machado, Oliveira and Fernandes, 2009), by rows."""

XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]
"""From linear sRGB to CIE XYZ."""

SHAPES = 8


def lab(colours, vision):
    """Return CIE Lab coordinates (n, 3) of hexadecimal colours as seen with a kind of colour vision."""
    parts = np.array([[int(one[i : i + 2], 16) for i in (1, 3, 5)] for one in colours]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.reshape(VISION[vision], (3, 3)).T, 0, 1)
    ratio = seen @ np.transpose(XYZ) / [0.95047, 1, 1.08883]
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_of_labels_are_distinct(scheme, vision):
    style = (Path(page.__file__).parent / "assets" / "page.css").read_text()
    block = re.findall(r":root \{(.*?)\}", style, re.S)[scheme]
    found = dict(re.findall(r"--class-(\d+): (#[0-9a-f]{6});", block))
    seen = lab([found[str(i)] for i in range(20)], vision)
    apart = np.linalg.norm(seen[:, None] - seen, axis=2) + np.diag(np.full(20, 1e3))
    colour, mark = np.arange(40) % 20, np.arange(40) % SHAPES  # of each label
    pairs = mark[:, None] == mark
    first, second = np.nonzero(pairs & ~np.eye(40, dtype=bool))
    assert apart[:10, :10].min() >= 20  # circles only, up to ten labels
    assert apart.min() >= 13
    assert apart[colour[first], colour[second]].min() >= 20  # same mark
    assert not (colour[first] == colour[second]).any()
