"""How many devices share what: rows of a batch, players, features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from eigengame import _check

AXES = ("data", "players", "features")
"""The axes of every mesh here; any of them may be 1."""


class Layout(NamedTuple):
    """How many devices share the rows of a batch, the players and the features."""

    data: int = 1
    players: int = 1
    features: int = 1

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return math.prod(self)

    def __str__(self) -> str:
        shared = [f"{axis}={size}" for axis, size in zip(AXES, self, strict=True) if size > 1]
        return ",".join(shared) or "one device"


def layout_of(asked: Any) -> Layout:
    """Return the layout that is meant by a layout, a mapping, a text like "data=2,features=4" or a mesh."""
    if isinstance(asked, Layout):
        return asked
    if isinstance(asked, Mesh):
        return _from_pairs(dict(asked.shape), asked)
    if isinstance(asked, str):
        parts = [part.split("=") for part in asked.split(",")]
        if any(len(part) != 2 for part in parts):
            raise _refused(asked)
        try:
            return _from_pairs({name.strip(): int(size) for name, size in parts}, asked)
        except ValueError:
            raise _refused(asked) from None
    if isinstance(asked, Mapping):
        return _from_pairs(asked, asked)
    raise _refused(asked)


def mesh_of(asked: Any, devices: Sequence[Any] | None = None) -> Mesh:
    """Return a mesh with the three axes, of the devices given or of all there are.

    Devices beyond those that the layout takes are left alone.
    """
    if isinstance(asked, Mesh) and asked.axis_names == AXES:
        return asked
    layout = layout_of(asked)
    here = list(devices) if devices is not None else _devices_of(asked)
    if layout.devices > len(here):
        raise ValueError(
            f"mesh={layout} takes {layout.devices} devices and there are {len(here)}: give a smaller mesh, "
            "or simulate devices by XLA_FLAGS=--xla_force_host_platform_device_count=8."
        )
    return Mesh(np.array(here[: layout.devices]).reshape(layout), AXES)


def _devices_of(asked: Any) -> list[Any]:
    """Return the devices of a mesh with axes in another order, or all."""
    return list(asked.devices.flat) if isinstance(asked, Mesh) else jax.devices()


def _from_pairs(sizes: Mapping[str, Any], asked: Any) -> Layout:
    """Return a layout from sizes by name."""
    unknown = [name for name in sizes if name not in AXES]
    if unknown or not sizes:
        raise _refused(asked)
    return Layout(**{name: _check.whole(f"mesh {name}", size) for name, size in sizes.items()})


def _refused(asked: Any) -> ValueError:
    return ValueError(
        f"mesh={asked!r}: give sizes of {', '.join(AXES)}, for example "
        '{"data": 2, "features": 4} or "data=2,features=4", a jax Mesh with these axes, or "auto".'
    )
