"""The part of a batch that a process reads, and distributed arrays made from these parts.

The devices of a process determine its part: it reads the rows and columns that they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from eigengame.sharding.layout import AXES


def process_grid(mesh: Mesh) -> np.ndarray:
    """Return the process of each device, in the shape of the mesh (data, players, features)."""
    indices = [device.process_index for device in mesh.devices.flat]
    return np.array(indices).reshape(mesh.devices.shape)


def is_contiguous(grid: np.ndarray) -> bool:
    """Return whether each process holds one block: a range of rows times a range of features.

    Parameters
    ----------
    grid : array of shape (data, players, features)
        The process of each device.
    """
    for process in np.unique(grid):
        held = (grid == process).any(axis=1)  # (data, features)
        rows, columns = np.flatnonzero(held.any(axis=1)), np.flatnonzero(held.any(axis=0))
        if not held[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all():
            return False
    return True


def local_range(mesh: Mesh, axis: str) -> tuple[int, int]:
    """Return the range of parts along an axis that this process holds: the first, and one past the last."""
    local = np.nonzero(process_grid(mesh) == jax.process_index())[AXES.index(axis)]
    return int(local.min()), int(local.max()) + 1


def put_local(mesh: Mesh, values: Any, axes: Sequence[str]) -> jax.Array:
    """Return a distributed array, split along `axes`, to which this process contributes `values`."""
    held, shape, begins = np.asarray(values), [], []
    for size, axis in zip(held.shape, axes, strict=True):
        first, last = local_range(mesh, axis)
        part = size // (last - first)
        shape.append(part * mesh.shape[axis])
        begins.append(first * part)

    def shard(index: tuple[slice, ...] | None) -> np.ndarray:
        assert index is not None
        ends = (one.indices(size) for one, size in zip(index, shape, strict=True))
        cuts = zip(ends, begins, strict=True)
        return held[tuple(slice(a - begin, b - begin) for (a, b, _), begin in cuts)]

    return jax.make_array_from_callback(tuple(shape), NamedSharding(mesh, P(*axes)), shard)
