"""How many rows a batch has: few large batches are faster and forget less, but they must fit into memory."""

from __future__ import annotations

import jax
import numpy as np

from eigengame.linalg.products import LONG_BATCH
from eigengame.linalg.wide import LEAST_FEATURES, MOST_ROWS
from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver.planning.memory import device_bytes
from eigengame.solver.planning.options import PROBES
from eigengame.solver.planning.parameters import SOLVER
from eigengame.solver.planning.problem import Problem
from eigengame.solver.rows.sparse_batches import csr_on_host
from eigengame.sources import RandomAccess, Source

BATCH_BYTES = 2**30
"""Largest batch of rows of the host if `batch_size` is "auto"."""

LARGE_BATCH_BYTES = 2**28
"""Largest batch of more than 1024 rows."""

MOST_SENT = {"cpu": 2**12, "gpu": 2**16}
"""Largest number of rows of a batch that is read from the host, by where it is multiplied."""

MOST_VIEWED = 2**14
"""Largest number of rows of a batch of an array in host memory that NumPy multiplies: it is not copied."""

LEAST_BATCHES = 8
"""Smallest number of batches of rows that a GPU gets from the host, and of an array there if the algorithm is
stepwise or the game has no probes."""

DEVICE_BATCH_BYTES = 2**31
"""Largest batch of an array on a device whose memory is not known."""

DEVICE_SHARE = 0.4
"""Share of the memory of a device beside an array that a batch of it may take, with what is computed from it."""

SPARSE_BATCH_BYTES = 2**28
"""Largest batch of sparse rows on the host: its entries, and some arrays of scores."""


def batch_rows(problem: Problem, shape: tuple[int | None, int], players: int) -> int:
    """Return the number of rows of a batch: enough for efficient products, of the host at most 1 GiB.

    Batches are as even as possible, in multiples of eight, so that little padding is needed; those of a GPU in
    multiples of 64, for sums in chunks of rows. A source with blocks of a fixed size gets whole multiples of them,
    as few as there are players.

    Parameters
    ----------
    problem : Problem
    shape : tuple of int
        Rows to be read, or None, and features.
    players : int
    """
    (n, d), given = shape, problem.source.block_rows
    if not isinstance(problem.batch_size, str):
        return int(problem.batch_size) if n is None else min(int(problem.batch_size), n)
    if given is not None:
        whole = given * -(-players // given)
        return whole if n is None else min(whole, n)
    row = d * np.dtype(problem.options.dtype).itemsize
    fits = max(1, BATCH_BYTES // row)
    # Larger batches forget less, and small problems between products count less; but they must fit into memory.
    sent = MOST_SENT.get(jax.default_backend(), MOST_SENT["cpu"])
    if n is not None:
        sent = min(sent, max(MOST_SENT["cpu"], -(-n // LEAST_BATCHES)))
    most = max(2 * players, min(1024, fits), min(sent, LARGE_BATCH_BYTES // row))
    if for_kernels(problem.source):
        return MOST_ROWS if n is None else min(MOST_ROWS, n)
    if problem.source.sparse and problem.mesh is None and csr_on_host(ONE_DEVICE):
        most = max(most, _sparse_rows_that_fit(problem, n, players))
    if problem.source.on_device and n is not None:
        # Rows that are on the device already: an update takes as long as many products, and each forgets a little.
        fits = _device_rows_that_fit(problem, row, n, players)
        # Estimates without probes need players of an earlier batch.
        if problem.algorithm not in SOLVER or problem.options.probes == 0:
            fits = min(fits, max(1024, -(-n // LEAST_BATCHES)))
        most = max(2 * players, fits)
        if most >= n:
            return n
    if n is None:
        return most
    even, unit = (
        -(-n // -(-n // most)),
        64 if jax.default_backend() == "gpu" and most >= LONG_BATCH else 8,
    )
    return min(n, -(-even // unit) * unit)


def _device_rows_that_fit(problem: Problem, row: int, n: int, players: int) -> int:
    """Return the number of rows of an array on a device, of `row` bytes each, that are played together.

    An array that fits is one batch, which is not copied unless it has weights or a frame. Two parts of it in half
    precision and some arrays of scores are made. Of several batches there are copies too. The number does not
    depend on what else is in memory, so that results are reproducible.
    """
    given, whole = problem.options.probes, device_bytes()
    scores = score_bytes(players, PROBES if isinstance(given, str) else given)
    if whole is None:
        return max(1024, DEVICE_BATCH_BYTES // (row + scores))
    room = DEVICE_SHARE * (whole - n * row)
    copies = 1 if problem.weights is None else 2
    if n * (copies * row + scores) <= room:
        return n
    return max(1024, int(max(room, 0) / (3 * row + scores)))


def score_bytes(players: int, probes: int) -> int:
    """Return the bytes of the scores of a row in an update of long batches, with temporary arrays."""
    return 4 * (8 * players + 2 * probes)


def _sparse_rows_that_fit(problem: Problem, n: int | None, players: int) -> int:
    """Return the number of sparse rows of a batch on the host, or 0 if the number of their entries is unknown.

    An update takes about $10 K^2d$ operations besides its products, which take $3K$ for each entry: few large
    batches are faster.
    """
    entries = None if n is None else problem.source.most_entries(n)
    if n is None or entries is None:
        return 0
    size = np.dtype(problem.options.dtype).itemsize
    # Entries as read and as multiplied, with their columns; scores of players and of directions, twice.
    row = entries / n * (2 * size + 4) + 8 * players * size
    return int(SPARSE_BATCH_BYTES / row)


def growing_rows(problem: Problem, rows: int | None, batch: int) -> int | None:
    """Return the number of rows up to which batches grow that NumPy multiplies; None if all have the same number.

    Views of an array in host memory may have any number of rows. The game begins with a small batch.
    """
    source, automatic = problem.source, isinstance(problem.batch_size, str)
    if not (automatic and source.views and isinstance(source, RandomAccess) and rows is not None):
        return None
    most = min(MOST_VIEWED, LARGE_BATCH_BYTES // (8 * source.shape[1]), rows)
    return most if most > batch else None


def for_kernels(source: Source) -> bool:
    """Return whether rows are such that a plan prefers numbers of rows and players for which there are kernels."""
    wide = source.on_device and source.shape[1] >= LEAST_FEATURES
    return wide and source.dtype.name == "bfloat16" and jax.default_backend() == "gpu"


def is_one_batch(problem: Problem, rows: int | None, batch: int) -> bool:
    """Return whether a batch holds all rows of sparse data in the memory of the host."""
    if not problem.source.sparse or problem.source.slow or rows is None or rows > batch:
        return False
    return problem.mesh is None and csr_on_host(ONE_DEVICE)
