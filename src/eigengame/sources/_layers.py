"""The layers of a network: what each is called, its shape, and where it lies in a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Layer(NamedTuple):
    """One layer's output.

    Attributes
    ----------
    name : str
    shape : tuple of int
        For one row, as the network gives it: (channels, height, width) of a picture.
    begin, end : int
        Its features in a row.
    channels_last : bool
        Whether it lies there with its first axis last, as networks in this memory format compute it.
    """

    name: str
    shape: tuple[int, ...]
    begin: int
    end: int
    channels_last: bool = False

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape in which it lies in a row."""
        return (*self.shape[1:], self.shape[0]) if self.channels_last else self.shape

    def cut(self, rows: Any) -> Any:
        """Return its part of rows (..., d), shape (..., *shape): a view, where the array can give one."""
        lead, axes = rows.ndim - 1, len(self.shape)
        part = rows[..., self.begin : self.end].reshape(*rows.shape[:-1], *self.stored)
        if not self.channels_last:
            return part
        return part.transpose(*range(lead), lead + axes - 1, *range(lead, lead + axes - 1))

    def at(self, column: int) -> tuple[int, ...]:
        """Return the place within its shape of one feature of a row."""
        place = [int(i) for i in np.unravel_index(column - self.begin, self.stored)]
        return tuple([place[-1], *place[:-1]] if self.channels_last else place)


class Layers(tuple[Layer, ...]):
    """Layers in the order in which they lie in a row."""

    @classmethod
    def of(cls, seen: Iterable[tuple[str, Sequence[int], bool]]) -> Layers:
        """Return layers one after the other, from names, shapes and whether channels are last."""
        layers, begin = [], 0
        for name, shape, channels_last in seen:
            sizes = tuple(int(size) for size in shape)
            end = begin + math.prod(sizes)
            layers.append(Layer(name, sizes, begin, end, channels_last))
            begin = end
        return cls(layers)

    @property
    def width(self) -> int:
        """How many features a row has."""
        return self[-1].end if self else 0

    @property
    def names(self) -> list[str]:
        """What the layers are called."""
        return [layer.name for layer in self]

    def cut(self, rows: Any) -> dict[str, Any]:
        """Return components (k, d), or a mean (d,), as one array for each layer, by name.

        Shapes are (k, *shape), or the layer's own: pictures come back as (channels, height, width).
        """
        if rows.shape[-1] != self.width:
            raise ValueError(
                f"rows have {rows.shape[-1]} features, but these layers have {self.width}: give components "
                "of a fit on them."
            )
        return {layer.name: layer.cut(rows) for layer in self}

    def shares(self, components: Any) -> np.ndarray:
        """Return how much of each component lies in each layer, shape (k, layers): rows add up to 1."""
        parts = [np.asarray(components[:, layer.begin : layer.end]) for layer in self]
        squares = np.stack(
            [np.square(part, dtype=np.float64).sum(axis=1) for part in parts], axis=1
        )
        total = squares.sum(axis=1, keepdims=True)
        return squares / np.where(total > 0, total, 1)

    def explained(self, components: Any, variance: Any) -> np.ndarray:
        """Return each layer's share of what components of these variances explain together, shape (layers,)."""
        total = float(np.sum(variance))
        return np.asarray(variance) @ self.shares(components) / (total if total > 0 else 1)

    def at(self, column: int) -> tuple[Layer, tuple[int, ...]]:
        """Return the layer of a feature, and the place in it."""
        layer = next(layer for layer in self if layer.begin <= column < layer.end)
        return layer, layer.at(column)

    def facts(self) -> list[dict[str, Any]]:
        """Return plain JSON."""
        return [
            {"name": layer.name, "shape": list(layer.shape), "channels_last": layer.channels_last}
            for layer in self
        ]

    @classmethod
    def from_facts(cls, facts: Iterable[dict[str, Any]]) -> Layers:
        """Return layers from their JSON."""
        return cls.of((one["name"], one["shape"], one["channels_last"]) for one in facts)
