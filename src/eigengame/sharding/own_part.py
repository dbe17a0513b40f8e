"""Which part of a batch a process reads, by the devices of a mesh that are its own, and how it brings it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from eigengame.sharding.layout import AXES


def processes_of(mesh: Mesh) -> np.ndarray:
    """Return the process of each device of a mesh, in its shape."""
    places = [one.process_index for one in mesh.devices.flat]
    return np.array(places).reshape(mesh.devices.shape)


def in_pieces(owners: np.ndarray) -> bool:
    """Say whether each process has a range of the rows and a range of the features, and all of both.

    Parameters
    ----------
    owners : array of shape (data, players, features)
        The process of each device.
    """
    for process in np.unique(owners):
        held = (owners == process).any(axis=1)  # (data, features)
        rows, columns = np.flatnonzero(held.any(axis=1)), np.flatnonzero(held.any(axis=0))
        if not held[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all():
            return False
    return True


def own_parts(mesh: Mesh, axis: str) -> tuple[int, int]:
    """Return the first of the parts along an axis that this process has, and the one after its last."""
    mine = np.nonzero(processes_of(mesh) == jax.process_index())[AXES.index(axis)]
    return int(mine.min()), int(mine.max()) + 1


def put_own(mesh: Mesh, values: Any, axes: Sequence[str]) -> jax.Array:
    """Return an array that is split along these axes, of which this process brings its own parts."""
    held, shape, begins = np.asarray(values), [], []
    for size, axis in zip(held.shape, axes, strict=True):
        first, last = own_parts(mesh, axis)
        each = size // (last - first)
        shape.append(each * mesh.shape[axis])
        begins.append(first * each)

    def part(index: tuple[slice, ...] | None) -> np.ndarray:
        assert index is not None
        ends = (one.indices(size) for one, size in zip(index, shape, strict=True))
        cuts = zip(ends, begins, strict=True)
        return held[tuple(slice(a - begin, b - begin) for (a, b, _), begin in cuts)]

    return jax.make_array_from_callback(tuple(shape), NamedSharding(mesh, P(*axes)), part)
