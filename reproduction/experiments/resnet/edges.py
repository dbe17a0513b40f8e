"""The Gabor or Laplacian-of-Gaussian filter that explains most of a map's variance, compared with chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

CYCLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Waves of a Gabor filter over the side of a map."""
DEGREES = tuple(range(0, 180, 15))
WIDTHS = (0.1, 0.2, 0.4, 1.0)
"""Standard deviations of its envelope, in sides of a map; the last is nearly flat."""
SPOTS = (0.08, 0.12, 0.18, 0.25, 0.35)
"""Standard deviations of a Laplacian of Gaussian."""
CENTRES = (-0.25, 0.0, 0.25)

LOCAL = 0.25
"""Largest standard deviation of a local filter: two of them to each side of the centre are one side of a map."""
BANDPASS = 0.27
"""Least product of frequency and envelope of a local Gabor filter: a bandwidth of at most 2.5 octaves.

Below it the filter has no full wave within its envelope: it is a gradient or a blob.
"""

SCRAMBLED = 100
"""Number of random maps with the same power spectrum, which give the fit by chance."""
QUANTILE = 0.95
"""Quantile of their fits that a map has to exceed."""


class Edge(NamedTuple):
    """The best filter for a map.

    Attributes
    ----------
    kind : {"Gabor", "LoG"}
    fit : float
        Share of the map's variance that it explains, from 0 to 1.
    chance : float
        `QUANTILE` of the best share for maps with the same power spectrum and random phases.
    cycles, degrees : float
        Waves of a Gabor filter over the side, and their direction.
    width : float
        Standard deviation of its envelope, in sides of the map.
    """

    kind: str
    fit: float
    chance: float
    cycles: float
    degrees: float
    width: float


class Shape(NamedTuple):
    """Parameters of a filter; see `Edge`."""

    kind: str
    cycles: float
    degrees: float
    width: float

    @property
    def local(self) -> bool:
        """Whether the filter covers a part of the map, and is bandpass if it is a Gabor filter."""
        waves = self.kind == "LoG" or self.cycles * self.width >= BANDPASS
        return self.width <= LOCAL and waves


def edges_of(maps: np.ndarray) -> list[dict[str, Edge]]:
    """Return the best filter for each square map, shape (count, side, side), in its full resolution.

    Returns
    -------
    list of dict
        For each map "any": the best of all filters, and "local": the best filter that is local and bandpass.
    """
    maps = np.asarray(maps, np.float32)
    rng = np.random.default_rng(0)
    # Each map, then its scrambled versions.
    drawn = np.stack([[one, *(scrambled(one, rng) for _ in range(SCRAMBLED))] for one in maps])
    count, trials = drawn.shape[:2]
    flat = drawn.reshape(count * trials, -1).astype(np.float32)
    best = {reach: np.full(count * trials, -1.0) for reach in ("any", "local")}
    which: dict[str, list[Shape | None]] = {reach: [None] * count for reach in best}
    for shapes, bases in _filters(maps.shape[-1]):
        fits = _fits(flat, bases)
        for reach, known in best.items():
            allowed = np.array([reach == "any" or shape.local for shape in shapes])
            seen = np.where(allowed, fits, -1.0)
            for i in range(count):
                if seen[i * trials].max() > known[i * trials]:
                    which[reach][i] = shapes[int(seen[i * trials].argmax())]
            np.maximum(known, seen.max(axis=1), out=known)
    return [
        {
            reach: _edge(which[reach][i], known[i * trials : (i + 1) * trials])
            for reach, known in best.items()
        }
        for i in range(count)
    ]


def _edge(shape: Shape | None, fits: np.ndarray) -> Edge:
    """Return the record of a map's best filter; the first fit is that of the map, others are by chance."""
    assert shape is not None
    chance = float(np.quantile(fits[1:], QUANTILE))
    return Edge(shape.kind, float(fits[0]), chance, shape.cycles, shape.degrees, shape.width)


def scrambled(map_: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a map with the same power spectrum and random phases."""
    waves = np.fft.fft2(rng.normal(size=map_.shape))
    size = np.abs(waves)
    turns = waves / np.where(size > 0, size, 1)
    return np.fft.ifft2(np.abs(np.fft.fft2(map_ - map_.mean())) * turns).real


def _fits(flat: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """Return the share of each map's variance in the span of each filter, shape (maps, filters)."""
    flat = flat - flat.mean(axis=1, keepdims=True)
    whole = np.sum(flat.astype(np.float64) ** 2, axis=1)
    parts = (flat @ bases.reshape(-1, flat.shape[1]).T).reshape(len(flat), -1, 2)
    shares: np.ndarray = np.sum(parts.astype(np.float64) ** 2, axis=2)
    return shares / np.where(whole > 0, whole, 1)[:, None]


def _filters(side: int) -> Iterator[tuple[list[Shape], np.ndarray]]:
    """Yield the filters at each centre: parameters, and orthonormal bases of shape (filters, 2, side^2).

    The two phases of a Gabor filter span all others, so that phase and amplitude need no search. A bank for one
    centre and a side of 112 takes 50 MB; all of them at once would take nine times that.
    """
    line = (np.arange(side) + 0.5) / side - 0.5
    x, y = np.meshgrid(line, line)
    for a in CENTRES:
        for b in CENTRES:
            r2 = (x - a) ** 2 + (y - b) ** 2
            shapes, bases = [], []
            for s in SPOTS:
                spot = (1 - r2 / (2 * s**2)) * np.exp(-r2 / (2 * s**2))
                shapes.append(Shape("LoG", 0.0, 0.0, s))
                bases.append(_basis([spot, np.zeros_like(spot)]))
            for s in WIDTHS:
                envelope = np.exp(-r2 / (2 * s**2))
                for degrees in DEGREES:
                    turn = np.radians(degrees)
                    along = (x - a) * np.cos(turn) + (y - b) * np.sin(turn)
                    for cycles in CYCLES:
                        phase = 2 * np.pi * cycles * along
                        shapes.append(Shape("Gabor", cycles, float(degrees), s))
                        bases.append(_basis([envelope * np.cos(phase), envelope * np.sin(phase)]))
            yield shapes, np.stack(bases).astype(np.float32)


def _basis(maps: list[np.ndarray]) -> np.ndarray:
    """Return an orthonormal basis of the span of two centred maps, shape (2, pixels)."""
    flat = np.stack([one.ravel() - one.mean() for one in maps])
    values, turns = np.linalg.eigh(flat @ flat.T)
    # A map of zeros spans nothing.
    root = np.where(values > 1e-12 * values[-1], np.maximum(values, 1e-300), np.inf) ** -0.5
    return root[:, None] * (turns.T @ flat)
