"""The Gabor or Laplacian-of-Gaussian filter that explains most of a map's variance."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

CYCLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Waves of a Gabor filter over the side of a map."""
DEGREES = tuple(range(0, 180, 15))
WIDTHS = (0.2, 0.4, 1.0)
"""Standard deviations of its envelope, in sides of a map; the last is nearly flat."""
SPOTS = (0.08, 0.12, 0.18, 0.25, 0.35)
"""Standard deviations of a Laplacian of Gaussian."""
CENTRES = (-0.25, 0.0, 0.25)
SCRAMBLED = 20
"""Number of random maps with the same power spectrum, which give the fit by chance."""


class Edge(NamedTuple):
    """The best filter for a map.

    Attributes
    ----------
    kind : {"Gabor", "LoG"}
    fit : float
        Share of the map's variance that it explains, from 0 to 1.
    chance : float
        Mean of this share over maps with the same power spectrum and random phases.
    cycles, degrees : float
        Waves of a Gabor filter over the side, and their direction.
    """

    kind: str
    fit: float
    chance: float
    cycles: float
    degrees: float


def edges_of(maps: np.ndarray) -> list[Edge]:
    """Return the best filter for each square map, shape (count, side, side)."""
    maps = np.asarray(maps, np.float64)
    about, filters = _filters(maps.shape[-1])
    rng = np.random.default_rng(0)
    found = []
    for one in maps:
        fits = _fits(one[None], filters)[0]
        best = int(np.argmax(fits))
        drawn = np.stack([scrambled(one, rng) for _ in range(SCRAMBLED)])
        chance = _fits(drawn, filters).max(axis=1).mean()
        kind, cycles, degrees = about[best]
        found.append(Edge(kind, float(fits[best]), float(chance), cycles, degrees))
    return found


def scrambled(map_: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a map with the same power spectrum and random phases."""
    waves = np.fft.fft2(rng.normal(size=map_.shape))
    size = np.abs(waves)
    turns = waves / np.where(size > 0, size, 1)
    return np.fft.ifft2(np.abs(np.fft.fft2(map_ - map_.mean())) * turns).real


def _fits(maps: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Return the share of each map's variance in the span of each filter, shape (maps, filters)."""
    flat = maps.reshape(len(maps), -1)
    flat = flat - flat.mean(axis=1, keepdims=True)
    whole = np.sum(flat**2, axis=1)
    parts = np.einsum("fpd,nd->nfp", filters, flat, optimize=True)
    return np.sum(parts**2, axis=2) / np.where(whole > 0, whole, 1)[:, None]


@functools.cache
def _filters(side: int) -> tuple[list[tuple[str, float, float]], np.ndarray]:
    """Return kind, cycles and degrees of each filter, and its orthonormal basis, shape (filters, 2, side^2).

    The two phases of a Gabor filter span all others, so that phase and amplitude need no search.
    """
    line = (np.arange(side) + 0.5) / side - 0.5
    x, y = np.meshgrid(line, line)
    about, bases = [], []
    for a in CENTRES:
        for b in CENTRES:
            r2 = (x - a) ** 2 + (y - b) ** 2
            for s in SPOTS:
                spot = (1 - r2 / (2 * s**2)) * np.exp(-r2 / (2 * s**2))
                about.append(("LoG", 0.0, 0.0))
                bases.append(_basis([spot, np.zeros_like(spot)]))
            for s in WIDTHS:
                envelope = np.exp(-r2 / (2 * s**2))
                for degrees in DEGREES:
                    turn = np.radians(degrees)
                    along = (x - a) * np.cos(turn) + (y - b) * np.sin(turn)
                    for cycles in CYCLES:
                        phase = 2 * np.pi * cycles * along
                        about.append(("Gabor", cycles, float(degrees)))
                        bases.append(_basis([envelope * np.cos(phase), envelope * np.sin(phase)]))
    return about, np.stack(bases)


def _basis(maps: list[np.ndarray]) -> np.ndarray:
    """Return an orthonormal basis of the span of two centred maps, shape (2, pixels)."""
    flat = np.stack([one.ravel() - one.mean() for one in maps])
    values, turns = np.linalg.eigh(flat @ flat.T)
    # A map of zeros spans nothing.
    root = np.where(values > 1e-12 * values[-1], np.maximum(values, 1e-300), np.inf) ** -0.5
    return root[:, None] * (turns.T @ flat)
