"""Layers of a network: their names, shapes and positions in a row, and which side of them a row contains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

SIDES = ("outputs", "inputs")
"""Side of the layers that rows contain: what comes out of them, or what goes into them."""


class Layer(NamedTuple):
    """Output of one layer, or its input.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Shape for one row, as the network has it: (channels, height, width) for an image.
    begin, end : int
        Range of its features in a row.
    channels_last : bool
        Whether its first axis is stored last in a row, as networks in this memory format compute it.
    side : {"outputs", "inputs"}
        Whether these features are what comes out of the layer, or what goes into it.
    """

    name: str
    shape: tuple[int, ...]
    begin: int
    end: int
    channels_last: bool = False
    side: str = SIDES[0]

    @property
    def stored(self) -> tuple[int, ...]:
        """Shape in which the layer is stored in a row."""
        return (*self.shape[1:], self.shape[0]) if self.channels_last else self.shape

    def cut(self, rows: Any) -> Any:
        """Return the layer's part of rows (..., d), shape (..., *shape), as a view if possible."""
        lead, axes = rows.ndim - 1, len(self.shape)
        part = rows[..., self.begin : self.end].reshape(*rows.shape[:-1], *self.stored)
        if not self.channels_last:
            return part
        return part.transpose(*range(lead), lead + axes - 1, *range(lead, lead + axes - 1))

    def at(self, column: int) -> tuple[int, ...]:
        """Return the index within the layer's shape of a feature of the row."""
        index = [int(i) for i in np.unravel_index(column - self.begin, self.stored)]
        return tuple([index[-1], *index[:-1]] if self.channels_last else index)


class Layers(tuple[Layer, ...]):
    """Layers in the order of their features in a row."""

    @classmethod
    def of(cls, parts: Iterable[tuple[str, Sequence[int], bool]], side: str = SIDES[0]) -> Layers:
        """Return consecutive layers from tuples of name, shape and channels_last, all of one side."""
        layers, begin = [], 0
        for name, shape, channels_last in parts:
            sizes = tuple(int(size) for size in shape)
            end = begin + math.prod(sizes)
            layers.append(Layer(name, sizes, begin, end, channels_last, side))
            begin = end
        return cls(layers)

    @property
    def width(self) -> int:
        """Number of features in a row."""
        return self[-1].end if self else 0

    @property
    def names(self) -> list[str]:
        """Names of the layers."""
        return [layer.name for layer in self]

    @property
    def side(self) -> str:
        """Side of the layers that rows contain: "outputs" or "inputs"."""
        return self[0].side if self else SIDES[0]

    def difference(self, fitted: Layers) -> str:
        """Return how these layers differ from those of a fit, and the remedy, for messages."""
        if self.side != fitted.side:
            return (
                f"rows are {self.side} of layers, but those of the fit are {fitted.side}: pass "
                f"side={fitted.side!r} to activations."
            )
        return (
            "layers are not those of the fit, or in another order: pass layers=pca.layers_ to activations, or "
            "give gradients of the same parameters."
        )

    def cut(self, rows: Any) -> dict[str, Any]:
        """Split components (k, d), or a mean (d,), into one array per layer.

        The arrays have shape (k, *shape), or the layer's shape for a mean. Images have shape
        (channels, height, width).
        """
        if rows.shape[-1] != self.width:
            raise ValueError(
                f"rows have {rows.shape[-1]} features, but these layers have {self.width}: give components "
                "of a fit on them."
            )
        return {layer.name: layer.cut(rows) for layer in self}

    def shares(self, components: Any) -> np.ndarray:
        """Return the share of each component in each layer, shape (k, layers). Rows sum to 1."""
        parts = [np.asarray(components[:, layer.begin : layer.end]) for layer in self]
        squares = np.stack(
            [np.square(part, dtype=np.float64).sum(axis=1) for part in parts], axis=1
        )
        total = squares.sum(axis=1, keepdims=True)
        return squares / np.where(total > 0, total, 1)

    def explained(self, components: Any, variance: Any) -> np.ndarray:
        """Return each layer's share of the explained variance (k,) of components (k, d), shape (layers,)."""
        total = float(np.sum(variance))
        return np.asarray(variance) @ self.shares(components) / (total if total > 0 else 1)

    def at(self, column: int) -> tuple[Layer, tuple[int, ...]]:
        """Return the layer of a feature, and the index within it."""
        layer = next(layer for layer in self if layer.begin <= column < layer.end)
        return layer, layer.at(column)

    def facts(self) -> list[dict[str, Any]]:
        """Return the layers as plain JSON. Without a side, layers are outputs, as in earlier versions."""
        return [
            {"name": layer.name, "shape": list(layer.shape), "channels_last": layer.channels_last}
            | ({} if layer.side == SIDES[0] else {"side": layer.side})
            for layer in self
        ]

    @classmethod
    def from_facts(cls, facts: Iterable[dict[str, Any]]) -> Layers:
        """Return layers from the JSON of `facts`."""
        given = list(facts)
        side = given[0].get("side", SIDES[0]) if given else SIDES[0]
        return cls.of(((one["name"], one["shape"], one["channels_last"]) for one in given), side)
