"""The memory that a run will take, told before it starts, and refused where it cannot fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jax

from eigengame.parallel.placement import ONE_DEVICE, Placement


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
        Rows on their way to a device with memory of its own.
    """

    batches: int
    players: int
    features: int
    host: int = 0

    @property
    def total(self) -> int:
        """All of it on the device."""
        return self.batches + self.players + self.features

    def __str__(self) -> str:
        also = f"; {_size(self.host)} on the host" if self.host else ""
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
    """
    layout = place.layout
    batch, d = place.height(shape[0]) // layout.data, place.width(shape[1]) // layout.features
    arrays = 6 if passes == 1 else 14
    own_memory = jax.devices()[0].platform != "cpu"
    return Plan(
        batches=held * batch * d * itemsize,
        players=arrays * players * d * itemsize,
        features=8 * d * itemsize,
        host=2 * shape[0] * shape[1] * itemsize if own_memory else 0,
    )


def refuse_unless_fits(planned: Plan, batch: int, players: int) -> None:
    """Raise where a run needs more than there is, and say what would make it fit."""
    pairs = ((planned.total, available()), (planned.host, free_memory()))
    for needed, there in pairs:
        if there is not None and needed > there:
            raise MemoryError(
                f"the run would take {planned}, but {_size(there)} is free: give a smaller batch_size "
                f"(it is {batch}), fewer components or extra players (there are {players}), or "
                'dtype="float32".'
            )


def available() -> int | None:
    """Return the free bytes of the device, or of the host where that is the device; None if unknown."""
    device = jax.devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
    return free_memory()


def free_memory() -> int | None:
    """Return the free bytes of the host; None if unknown."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _size(count: int) -> str:
    """Return bytes as people read them."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
