"""The memory that a run will take, told before it starts, and refused where it cannot fit."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from eigengame._system.memory import free_memory
from eigengame.linalg.offload import BLOCK
from eigengame.sharding.placement import ONE_DEVICE, Placement


@dataclass(frozen=True)
class Plan:
    """Bytes that a run takes beyond its data, on the device, and on the host where that is another.

    Attributes
    ----------
    batches : int
        Rows read ahead, and those being played.
    players : int
        Players, their directions and what an update needs beside them.
    features : int
        Means and variances of each feature.
    host : int
        Rows on their way to a device with memory of its own, or players that it has no room for.
    buffers : int
        Rows that a network computes there, on the one device it is on.
    """

    batches: int
    players: int
    features: int
    host: int = 0
    buffers: int = 0

    @property
    def total(self) -> int:
        """All of it on the device."""
        return self.batches + self.players + self.features + self.buffers

    def __str__(self) -> str:
        also = f", {_size(self.buffers)} of buffers" if self.buffers else ""
        also += f"; {_size(self.host)} on the host" if self.host else ""
        return (
            f"about {_size(self.total)}: {_size(self.batches)} of batches, {_size(self.players)} of "
            f"players, {_size(self.features)} of features{also}"
        )


def plan(
    shape: tuple[int, int],
    players: int,
    itemsize: int,
    held: int,
    *,
    passes: int = 1,
    place: Placement = ONE_DEVICE,
    own: int | None = None,
    hosted: bool = False,
) -> Plan:
    """Return what a run takes on each device.

    An update holds the players before and after it, their directions and two products on the way; a
    refinement holds players, moves and fresh directions, each with images, and the best so far.

    Parameters
    ----------
    shape : tuple of int
        Of a batch (rows, d).
    players : int
        Their number K.
    itemsize : int
        Bytes of a number.
    held : int
        Batches in memory at once.
    passes : int
        Passes that may be made.
    place : Placement
        Devices that share rows and features.
    own : int, optional
        Bytes of a number of rows that are computed on the device: they are held in buffers, and once more
        as an update widens, fills up or shares them.
    hosted : bool
        Whether players stay on the host, of which the device has a block at a time.
    """
    layout = place.layout
    batch, d = place.height(shape[0]) // layout.data, place.width(shape[1]) // layout.features
    arrays = 6 if passes == 1 else 14
    own_memory = jax.devices()[0].platform != "cpu"
    if hosted:
        return Plan(
            batches=0,
            players=4 * players * min(d, BLOCK) * itemsize,
            features=8 * d * itemsize,
            host=4 * players * d * itemsize,
            buffers=0 if own is None else held * shape[0] * shape[1] * own,
        )
    return Plan(
        batches=(held if own is None else 1) * batch * d * itemsize,
        players=arrays * players * d * itemsize,
        features=8 * d * itemsize,
        host=2 * shape[0] * shape[1] * itemsize if own_memory and own is None else 0,
        buffers=0 if own is None else held * shape[0] * shape[1] * own,
    )


def refuse_unless_fits(
    planned: Plan, batch: int, players: int, *, apart: int | None = None
) -> None:
    """Raise where a run needs more than there is, and say what would make it fit.

    `apart` is what is free for the buffers of a network, where they are not in JAX's own memory.
    """
    if planned.buffers:
        _refuse_unless_computed(planned, batch, players, apart)
        return
    pairs = ((planned.total, available()), (planned.host, free_memory()))
    for needed, there in pairs:
        if there is not None and needed > there:
            raise MemoryError(
                f"the run would take {planned}, but {_size(there)} is free: give a smaller batch_size "
                f"(it is {batch}), fewer components or extra players (there are {players}), or "
                'dtype="float32".'
            )


def _refuse_unless_computed(planned: Plan, batch: int, players: int, apart: int | None) -> None:
    """Raise where rows that a network computes do not fit beside the game."""
    there = available()
    ways = (
        f"give a smaller batch_size (it is {batch}), fewer or pooled layers, or fewer extra players by extra= "
        f"(there are {players} players)"
    )
    if apart is not None and planned.buffers > apart:
        raise MemoryError(
            f"the run would take {planned}, but of the device JAX leaves {_size(apart)} to the network's buffers: "
            f"{ways}, or leave more of it by XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 if not set)."
        )
    whole = planned.buffers if apart is None else 0
    shared = planned.total - planned.buffers
    if there is None or whole + shared <= there:
        free = free_memory()
        if free is None or planned.host <= free:
            return
        there = free
    # Buffers lie where the network is; everything else is shared by the devices of a mesh.
    mesh = f', or mesh={{"features": {-(-shared // (there - whole))}}}' if there > whole else ""
    if not planned.host:
        mesh += ", or one pass (passes=1, no tol), for which players can stay on the host"
    raise MemoryError(f"the run would take {planned}, but {_size(there)} is free: {ways}{mesh}.")


def available() -> int | None:
    """Return the free bytes of the device, or of the host where that is the device; None if unknown."""
    device = jax.devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
    return free_memory()


def _size(count: int) -> str:
    """Return bytes as people read them."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
