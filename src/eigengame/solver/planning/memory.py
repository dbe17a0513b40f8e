"""Memory of a fit: estimated before it starts, and refused if it does not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax

from eigengame._system.memory import free_memory
from eigengame.linalg.offload import BLOCK
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.certificates.krylov_space import most_directions
from eigengame.solver.certificates.probes import LARGEST_DEGREE

LITTLE = 2**24
"""Bytes that are always free."""

CERTIFIED_FEATURES = 2**17
"""Features of a block of arrays in float64, from which one pass is certified."""


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of a fit beyond its data, on each device, and on the host if that has memory of its own.

    Attributes
    ----------
    batches : int
        Batches that were read ahead, and the one in use.
    players : int
        Players, their directions and temporary arrays of an update.
    features : int
        Mean and variance of each feature.
    host : int
        Batches on their way to the device, or players that are kept in host memory.
    buffers : int
        Rows that a network computes on the device.
    probes : int
        Random probes and their products.
    certificate : int
        Arrays in float64 in host memory from which the certificate is computed, at most.
    """

    batches: int
    players: int
    features: int
    host: int = 0
    buffers: int = 0
    probes: int = 0
    certificate: int = 0

    @property
    def total(self) -> int:
        """Bytes on the device."""
        return self.batches + self.players + self.features + self.buffers + self.probes

    def __str__(self) -> str:
        more = f", probes {_text(self.probes)}" if self.probes else ""
        more += f", buffers {_text(self.buffers)}" if self.buffers else ""
        more += f"; host {_text(self.host)}" if self.host else ""
        more += f"; certificate up to {_text(self.certificate)}" if self.certificate else ""
        return (
            f"about {_text(self.total)} of memory (batches {_text(self.batches)}, players {_text(self.players)}, "
            f"features {_text(self.features)}{more})"
        )


def estimate_memory(
    shape: tuple[int, int],
    players: int,
    itemsize: int,
    held: int,
    *,
    passes: int = 1,
    placement: Placement = ONE_DEVICE,
    computed: int | None = None,
    there: int | None = None,
    scores: int = 0,
    on_host: bool = False,
    probes: int = 0,
    measured: int = 0,
) -> MemoryUse:
    """Return the memory that a fit takes on each device.

    An update holds the players before and after it, their directions and two intermediate products. A refinement
    holds players, moves and residual directions, each with its product with M, and the best players so far.

    Parameters
    ----------
    shape : tuple of int
        Rows and features of a batch.
    players : int
        Number of players K.
    itemsize : int
        Bytes of a number in the precision of the updates.
    held : int
        Batches in memory at a time.
    passes : int
        Largest number of passes.
    placement : Placement
        Devices that share rows and features.
    computed : int, optional
        Bytes of a number of rows that are computed on the device. They are held in buffers, and copied once when an
        update converts, pads or shares them.
    there : int, optional
        Arrays of the size of a batch that are computed from rows of an array on the device.
    scores : int
        Bytes of scores of such a row.
    on_host : bool
        Whether players are kept in host memory, with one block at a time on the device.
    probes : int
        Number of probes of the first pass.
    measured : int
        Number of probes of a certificate that is computed in host memory; 0 if none is.
    """
    layout = placement.layout
    rows, d = (
        placement.height(shape[0]) // layout.data,
        placement.width(shape[1]) // layout.features,
    )
    buffers = 0 if computed is None else held * shape[0] * shape[1] * computed
    features = 8 * d * itemsize
    if on_host:
        return MemoryUse(
            batches=0,
            players=4 * players * min(d, BLOCK) * itemsize,
            features=features,
            host=4 * players * d * itemsize,
            buffers=buffers,
        )
    own_memory, from_host = jax.devices()[0].platform != "cpu", computed is None and there is None
    return MemoryUse(
        batches=_batch_count(held, computed, there) * rows * d * itemsize + rows * scores,
        players=(6 if passes == 1 else 14) * players * d * itemsize,
        features=features,
        host=2 * shape[0] * shape[1] * itemsize if own_memory and from_host else 0,
        buffers=buffers,
        # Two arrays before and after an update; probes and products of a further pass are in float64.
        probes=(4 * probes * itemsize + (0 if passes == 1 else 4 * measured * 8)) * d,
        certificate=8 * shape[1] * certificate_rows(players, measured, passes, shape[1]),
    )


def _batch_count(held: int, computed: int | None, there: int | None) -> int:
    """Return the number of arrays of the size of a batch that an update takes."""
    if there is not None:
        return there
    return held if computed is None else 1


def certificate_rows(players: int, probes: int, passes: int, d: int) -> int:
    """Return the largest number of vectors (d,) in float64 on the host that a certificate takes.

    After one pass these are the players, the probes, their images, and parts of these. Further passes take a Krylov
    space that grows by the number of players, twice while it is extended. The probes have a block for each power,
    and a few more while they are multiplied.

    Parameters
    ----------
    players, probes : int
        Their numbers K and r; nothing is measured without probes.
    passes : int
        Largest number of passes.
    d : int
        Number of features.
    """
    if probes == 0:
        return 0
    if passes == 1:
        # Over blocks of features.
        return math.ceil((4 * players + 5 * probes) * min(1.0, CERTIFIED_FEATURES / d))
    space = min(d, players * (passes - 1), most_directions(players, d) + players)
    powers = min(passes, LARGEST_DEGREE)
    return 4 * space + (powers + 10) * probes + (powers + 6) * players


def refuse_unless_fits(
    memory: MemoryUse, batch: int, players: int, *, room: int | None = None
) -> None:
    """Raise MemoryError if a fit needs more memory than is free, with ways to make it fit.

    Parameters
    ----------
    memory : MemoryUse
    batch, players : int
        For the message.
    room : int, optional
        Free bytes for the buffers of a network, if they are outside of JAX's own memory.
    """
    if memory.buffers:
        _refuse_unless_buffers_fit(memory, batch, players, room)
        return
    here = memory.host + memory.certificate
    # A device without memory of its own shares that of the host.
    shared = memory.total + here if jax.devices()[0].platform == "cpu" else memory.total
    for needed, free_bytes in ((shared, available), (here, free_memory)):
        # For little memory nothing is measured: that takes time in a stream of small batches.
        free = free_bytes() if needed > LITTLE else None
        if free is not None and needed > free:
            fewer = (
                ", fewer probes or passes (such as passes=4)"
                if memory.certificate > memory.total
                else ""
            )
            raise MemoryError(
                f"the fit would take {memory}, but {_text(free)} is free: use a smaller batch_size (it is "
                f"{batch}), "
                f'fewer components or extra players (there are {players}){fewer}, or dtype="float32".'
            )


def _refuse_unless_buffers_fit(
    memory: MemoryUse, batch: int, players: int, room: int | None
) -> None:
    """Raise MemoryError if the rows that a network computes do not fit beside the game."""
    ways = (
        f"use a smaller batch_size (it is {batch}), fewer or pooled layers, or fewer extra players by extra= "
        f"(there are {players} players)"
    )
    if room is not None and memory.buffers > room:
        raise MemoryError(
            f"the fit would take {memory}, but JAX leaves {_text(room)} of the device to the buffers of the "
            f"network: {ways}, or leave more of it with XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 if not set)."
        )
    free, whole = available(), memory.buffers if room is None else 0
    shared = memory.total - memory.buffers
    if free is None or whole + shared <= free:
        free = free_memory()
        if free is None or memory.host + memory.certificate <= free:
            return
    # The buffers are on the device of the network; everything else can be shared by the devices of a mesh.
    mesh = f', or mesh={{"features": {-(-shared // (free - whole))}}}' if free > whole else ""
    if not memory.host:
        mesh += ", or one pass (passes=1, no tol), for which players can stay in host memory"
    raise MemoryError(f"the fit would take {memory}, but {_text(free)} is free: {ways}{mesh}.")


def available() -> int | None:
    """Return the free bytes of the device, or of the host if that is the device; None if unknown."""
    stats, limit = _device_stats(), device_bytes()
    return free_memory() if limit is None else limit - int(stats.get("bytes_in_use", 0))


def device_bytes() -> int | None:
    """Return the bytes of a device with memory of its own; None for a CPU or if unknown."""
    limit = _device_stats().get("bytes_limit")
    return None if limit is None else int(limit)


def _device_stats() -> Mapping[str, int]:
    """Return what the device tells of its memory; nothing for a CPU."""
    device = jax.devices()[0]
    return {} if device.platform == "cpu" else device.memory_stats() or {}


def _text(count: int) -> str:
    """Return a number of bytes in readable units."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
