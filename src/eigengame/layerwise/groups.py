"""Layers with equal shapes, whose fits are computed together, and the route of each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import numpy as np

from eigengame.layerwise.accumulate import Sums, no_games, no_scatter
from eigengame.solver.planning.options import PROBES, Options
from eigengame.sources import SourceError
from eigengame.sources._layers import Layer, Layers
from eigengame.sources.position_source import PositionSource

Stack = bool | Literal["auto"]

MOST_FEATURES = 8192
"""Largest number of features of the route "covariance"."""

HOST_FEATURES = 1024
"""The same for algorithm="auto" on a CPU. A transformer's own products cost 12 times as much as its matrices, but
eigenproblems of more features take seconds for each layer."""

MATRIX_BYTES = 2**33
"""Largest size of all scatter matrices with algorithm="auto"."""

MATRIX_PROBES = 16
"""Number of probes of the route "covariance", where they only bound the rounding error of the matrix."""

BLOCK_BYTES = 2**29
"""Size of a block of all layers of a group, for the route "covariance"."""

GAME_BYTES = 2**31
"""The same for remembered games on an accelerator. Each update solves a small problem: few large are faster."""

LEAST_ROWS, MOST_ROWS = 1024, 2**16
"""Limits of the number of rows of a block."""


@dataclass
class Group:
    """Layers of equal shape during a pass.

    Attributes
    ----------
    layers : list of Layer
    covariance : bool
        Whether scatter matrices are summed; else remembered games are played.
    options : Options
    sums : Sums
    buffer : row buffer of the network
    rows : array of int of shape (L,)
        Rows so far.
    before : Sums or None
        The sums before the last block.
    """

    layers: list[Layer]
    covariance: bool
    options: Options
    sums: Sums
    buffer: Any
    rows: np.ndarray
    before: Sums | None = None


def groups_of(layers: Layers, positions: Mapping[str, int], stack: Stack) -> list[list[Layer]]:
    """Return the layers in groups of equal numbers of features and positions.

    Parameters
    ----------
    layers : Layers
    positions : mapping of int
        Number of positions of each layer for the first inputs.
    stack : bool or "auto"
        True requires one group, and False makes one for each layer.
    """
    if not (isinstance(stack, bool) or stack == "auto"):
        raise ValueError(f'stack={stack!r}: give True, False or "auto".')
    found: dict[Any, list[Layer]] = {}
    for layer in layers:
        shape = (layer.end - layer.begin, positions[layer.name])
        found.setdefault(layer.name if stack is False else shape, []).append(layer)
    if stack is True and len(found) > 1:
        shapes = ", ".join(
            f"{group[0].name!r}: {positions[group[0].name]} positions of {group[0].end - group[0].begin} features"
            for group in found.values()
        )
        raise SourceError(
            f"stack=True, but layers have {len(found)} different shapes ({shapes}): give layers of one shape, or "
            'stack="auto".'
        )
    return list(found.values())


def rows_of_group(group: list[Layer], found: Mapping[str, Any], name: str) -> list[Any]:
    """Return the rows of the layers of a group; raise if their numbers differ in this batch."""
    rows = [found[layer.name] for layer in group]
    counts = {one.chosen.rows for one in rows}
    if len(counts) > 1:
        texts = ", ".join(
            f"{layer.name!r} {one.chosen.rows}" for layer, one in zip(group, rows, strict=True)
        )
        raise SourceError(
            f"{name}: layers that had the same positions in the first batch have different ones now ({texts}), and "
            "cannot be stacked: give stack=False."
        )
    return rows


def begin_group(
    group: list[Layer],
    source: PositionSource,
    k: int,
    algorithm: str,
    options: Options,
    batch_size: Any,
) -> Group:
    """Return a group without rows."""
    d, count = group[0].end - group[0].begin, len(group)
    if k > d:
        raise SourceError(
            f"k={k} is more than the {d} features of layer {group[0].name!r}: give at most {d}, or leave it out."
        )
    covariance = by_covariance(algorithm, d, count, options.players(k, d))
    if covariance and d > MOST_FEATURES:
        raise SourceError(
            f"algorithm='covariance', but layer {group[0].name!r} has {d:,} features: use 'remembered' for more "
            f"than {MOST_FEATURES:,}."
        )
    if covariance and options.extra == "auto":
        options = replace(options, extra=max(8, k // 2))
    options = replace(options, extra=options.players(k, d) - k)
    game, probes = options.game(), MATRIX_PROBES if covariance else PROBES
    sums = (
        no_scatter(count, d, options.seed, probes, np.float32 if on_accelerator() else np.float64)
        if covariance
        else no_games(game, count, k, d, options.seed, probes)
    )
    size = block_rows(
        batch_size, covariance, count * d * source.dtype.itemsize, options.players(k, d)
    )
    buffer = source.buffer(group, size)
    return Group(group, covariance, options, sums, buffer, np.zeros(count, np.int64))


def on_accelerator() -> bool:
    """Return whether JAX computes on a device with memory of its own."""
    return jax.default_backend() != "cpu"


def by_covariance(algorithm: str, d: int, layers: int, players: int) -> bool:
    """Return whether the scatter matrices of a group are summed."""
    if algorithm != "auto":
        return algorithm == "covariance"
    if 4 * layers * d**2 > MATRIX_BYTES:
        return False
    return d <= (MOST_FEATURES if on_accelerator() else max(HOST_FEATURES, 3 * players))


def block_rows(batch_size: Any, covariance: bool, row_bytes: int, players: int) -> int:
    """Return the number of rows of a block."""
    if batch_size != "auto":
        return int(batch_size)
    large = not covariance and on_accelerator()
    size = (GAME_BYTES if large else BLOCK_BYTES) // max(row_bytes, 1)
    most = MOST_ROWS if on_accelerator() else 4 * LEAST_ROWS
    size = max(LEAST_ROWS, 2 * players, min(size, most))
    return 1 << (size.bit_length() - 1) if size >= 2048 else size
