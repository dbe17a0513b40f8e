"""The goal of a refinement: tolerance, passes, and the data it works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from eigengame.game.csr_rows import sums_of_rows
from eigengame.sharding.gather import gather
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.certificates.rounding import Rounding
from eigengame.solver.passes.host_sums import MOST_ROWS, chunk_rows, on_host
from eigengame.solver.passes.passes import Passes
from eigengame.solver.planning.memory import device_bytes
from eigengame.solver.planning.plan import MOST_PRECISE
from eigengame.solver.rows.moments import Moments

DEVICE_BYTES = 2**30
"""Bytes that rows, players and products may take in float64 on the device of the rows, if it has little memory."""


@dataclass(frozen=True)
class Goal:
    """The goal of a refinement, and the data it works on.

    Attributes
    ----------
    passes : Passes
    mean : array of shape (d,) or None
        Mean about which M is taken.
    k : int
        Number of components.
    determined : int
        Number of components that the number of rows can determine; the others do not count for `tol`.
    scale : float
        Divisor of M for a covariance.
    max_passes : int
        Largest number of passes, those already made included.
    tol : float or None
        Largest angle; None uses all passes.
    seed : int
        Seed of the probes.
    rounding : Rounding
        Rounding of products in the precision of the updates.
    dtype : dtype
        Precision of the updates.
    in_float64 : bool
        Whether rows can also be read in float64. Players that are small enough are then measured in it.
    """

    passes: Passes
    mean: jax.Array | None
    k: int
    determined: int
    scale: float
    max_passes: int
    tol: float | None
    seed: int
    rounding: Rounding
    dtype: Any = np.float32
    in_float64: bool = True

    def met(self, found: Certificate) -> bool:
        """Return whether every component, or its cluster, is within tol by its bound."""
        return self.tol is not None and found.within(self.tol, self.determined)

    def on_host(self, players: Any) -> bool:
        """Return whether players (K, d) are small enough to be refined in float64 on the host."""
        return self.in_float64 and players.size <= MOST_PRECISE


def play_rounding(
    passes: Passes, moments: Moments, rows: int, dtype: Any, largest: float | None = None
) -> Rounding:
    """Return the rounding of products in the precision of the updates.

    `largest` is the largest sum of squares of a row, if it is known.
    """
    mean, scatter = (gather(one).astype(np.float64) for one in (moments.mean, moments.scatter))
    columns = scatter + float(moments.weight) * mean**2
    source, size, batches = passes.source, passes.longest_sum, rows / passes.size
    parts = 1.0
    if passes.sparse_on_host:
        size, sums = sums_of_rows(size)
        batches *= sums
    elif on_host(passes.in_float64(None)):
        # Either compiled functions multiply whole batches, or chunks of rows are added in float64.
        rows_of_chunk = [chunk_rows(source.shape[1], copied=copied) for copied in (False, True)]
        parts = max(passes.size / min(rows_of_chunk), 1.0)
        size = max(size, MOST_ROWS)
    return Rounding.probable(
        dtype,
        source.shape[1],
        size,
        batches,
        float(columns.sum()),
        entries=(source.most_entries(1) or source.shape[1]) if source.sparse else None,
        largest=largest,
        feature=float(columns.max(initial=0)),
        rows=rows,
        parts=parts,
    )


def measures_in_float64(passes: Passes, players: int) -> bool:
    """Return whether rows can be read in float64: rows on a device must leave memory for wider ones."""
    source, d = passes.source, passes.source.shape[1]
    room = max(DEVICE_BYTES, (device_bytes() or 0) // 16)
    size = passes.batches.in_float64(None).size
    return not source.on_device or 8 * d * (size + 4 * players) <= room
