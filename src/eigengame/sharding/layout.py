"""Layouts of devices: how many devices share the rows of a batch, the players and the features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from eigengame import _check

AXES = ("data", "players", "features")
"""The axes of every mesh. Any of them may have size 1."""


class Layout(NamedTuple):
    """Numbers of devices that share the rows of a batch, the players and the features."""

    data: int = 1
    players: int = 1
    features: int = 1

    @property
    def devices(self) -> int:
        """Total number of devices."""
        return math.prod(self)

    def __str__(self) -> str:
        shared = [f"{axis}={size}" for axis, size in zip(AXES, self, strict=True) if size > 1]
        return ",".join(shared) or "one device"


def parse_layout(mesh: Any) -> Layout:
    """Return the layout of a Layout, a mapping, a string such as "data=2,features=4", or a Mesh."""
    if isinstance(mesh, Layout):
        return mesh
    if isinstance(mesh, str):
        parts = [part.split("=") for part in mesh.split(",")]
        if any(len(part) != 2 for part in parts):
            raise _invalid(mesh)
        try:
            return _from_sizes({name.strip(): int(size) for name, size in parts}, mesh)
        except ValueError:
            raise _invalid(mesh) from None
    if isinstance(mesh, Mesh):
        return _from_sizes(dict(mesh.shape), mesh)
    if isinstance(mesh, Mapping):
        return _from_sizes(mesh, mesh)
    raise _invalid(mesh)


def make_mesh(mesh: Any) -> Mesh:
    """Return a mesh with the three axes from anything that `parse_layout` accepts.

    It consists of the devices of `mesh`, if that is a Mesh, and else of the first devices of JAX.
    """
    if isinstance(mesh, Mesh) and mesh.axis_names == AXES:
        return mesh
    layout = parse_layout(mesh)
    devices = list(mesh.devices.flat) if isinstance(mesh, Mesh) else jax.devices()
    if layout.devices > len(devices):
        raise ValueError(
            f"mesh={layout} needs {layout.devices} devices, but there are {len(devices)}: use a smaller mesh, "
            "or simulate devices with XLA_FLAGS=--xla_force_host_platform_device_count=8."
        )
    return Mesh(np.array(devices[: layout.devices]).reshape(layout), AXES)


def _from_sizes(sizes: Mapping[str, Any], mesh: Any) -> Layout:
    """Return the layout with the sizes given by axis name; `mesh` is the argument to show in errors."""
    if not sizes or not set(sizes) <= set(AXES):
        raise _invalid(mesh)
    return Layout(**{name: _check.whole(f"mesh {name}", size) for name, size in sizes.items()})


def _invalid(mesh: Any) -> ValueError:
    return ValueError(
        f"mesh={mesh!r} is not a mesh: use sizes of {', '.join(AXES)}, for example "
        '{"data": 2, "features": 4} or "data=2,features=4", a jax Mesh with these axes, or "auto".'
    )
