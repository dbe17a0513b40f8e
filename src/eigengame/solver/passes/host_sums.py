"""Sums over all rows on a host: products with a block of directions in float32, and some in float64 beside them.

Each batch is divided among threads, and each thread adds the products of chunks of its rows in float64. Large
batches in float32 are multiplied by a compiled program instead (`compiled_blocks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from eigengame._system.blas_threads import blas_threads
from eigengame._system.reused_memory import ReusedMemory
from eigengame._system.threads import in_threads
from eigengame.linalg.compiled_blocks import BlockSums, chunk_length, compiled_sums
from eigengame.solver.certificates.rounding import OPERATIONS
from eigengame.solver.passes.passes import Passes, SourcePasses
from eigengame.solver.rows.raw_rows import RawRows

CHUNK = 2**19
"""Size of the rows that are multiplied at a time in float32: about as much as stays in the cache."""

PANEL = 2**18
"""Size of a panel that is converted to float64 at a time."""

WIDE = 8192
"""Number of features up to which a panel has all of them, and of those of a panel otherwise."""

LEAST_ROWS, MOST_ROWS = 256, 1024
"""Limits of the number of rows of a chunk."""

LARGE = 2**24
"""Size of a batch from which a compiled program multiplies it."""

SMALL = 2**22
"""Multiplications below which one thread is enough."""


class HostSums(NamedTuple):
    r"""Sums over rows $Z$, multiplied by the roots $\rho$ of their weights.

    Attributes
    ----------
    images : array of shape (b, d)
        $(ZW^\top)^\top Z$ for directions $W$, by products in float32.
    along : array of shape (b,)
        $(ZW^\top)^\top\rho$.
    seen : array of shape (r, d)
        The same as `images` for other directions, in float64.
    scores : array of shape (r,)
        The same as `along` for these.
    columns, squares : arrays of shape (d,)
        $\rho^\top Z$, and the sums of squares of the columns; zero if there are no such directions.
    weight : array of shape ()
        Sum of the weights, in the same case.
    parts : int
        Largest number of sums over rows that were added to each other.
    rows : int
        Rows with a weight above 0.
    """

    images: Any
    along: Any
    seen: Any
    scores: Any
    columns: Any
    squares: Any
    weight: Any
    parts: int
    rows: int

    @classmethod
    def empty(cls, b: int, r: int, d: int) -> HostSums:
        """Return the sums over no rows. Large ones take no memory, and cannot be changed."""
        per_feature = (np.zeros(d), np.zeros(d), np.zeros(()))
        images, seen = (np.broadcast_to(0.0, (count, d)) for count in (b, r))
        return cls(images, np.zeros(b), seen, np.zeros(r), *per_feature, 0, 0)

    def plus(self, other: HostSums) -> HostSums:
        """Return the sums over the rows of both, in the arrays of the other: new ones would take longer to fill."""
        return HostSums(*(_added(one, another) for one, another in zip(self, other, strict=True)))

    def longest(self) -> int:
        """Return the length of the longest sum in float64, for a bound on its rounding."""
        d = len(self.columns)
        rows, width = panel_shape(d)
        return width + -(-d // width) + rows + self.parts + OPERATIONS


def _added(one: Any, other: Any) -> Any:
    """Return a sum, in the second array if it is one."""
    return np.add(one, other, out=other) if isinstance(other, np.ndarray) else one + other


def on_host(passes: Passes) -> bool:
    """Return whether rows are in memory that NumPy reads: then nothing needs to be compiled."""
    return isinstance(passes, SourcePasses) and passes.raw and jax.default_backend() == "cpu"


def add_rows(
    block: np.ndarray,
    draws: np.ndarray,
    carry: HostSums,
    rows: RawRows,
    count: int,
    *,
    level: np.ndarray | None = None,
    memory: ReusedMemory | None = None,
) -> HostSums:
    """Return the sums with one more batch.

    Parameters
    ----------
    block : array of shape (b, d)
        Directions in float32.
    draws : array of shape (r, d)
        Directions in float64.
    carry : HostSums
    rows : RawRows
    count : int
        Rows of the batch with a weight above 0.
    level : array of shape (b,), optional
        Scores of a centre in float32, which are subtracted from those of the rows for `images` and `along`.
    memory : ReusedMemory, optional
        For the products of large batches.
    """
    rows = jax.tree.map(np.asarray, rows)
    images, along, parts = carry.images, carry.along, 0
    for one in _block_sums(rows, block, level, memory or ReusedMemory()):
        images = np.add(images, one.images, out=one.images)
        along, parts = along + one.along, parts + one.parts
    before = carry.parts
    if len(draws):
        # The products of the block stay: an array without directions has no place for them.
        others = carry._replace(images=np.zeros((0, block.shape[1])), along=np.zeros(0))
        for found in in_threads(
            partial(draw_sums, rows, draws), parts_for_threads(rows, draws.size)
        ):
            others = others.plus(found)
        carry, parts = others, max(parts, others.parts - before)
    return carry._replace(images=images, along=along, parts=before + parts, rows=carry.rows + count)


def _block_sums(
    rows: RawRows, block: np.ndarray, level: np.ndarray | None, memory: ReusedMemory
) -> Iterable[BlockSums]:
    """Return the sums over parts of the rows for directions in float32."""
    if not len(block):
        return []
    values = np.asarray(rows.values)
    if values.size >= LARGE and rows.is_plain_float32(slice(None)):
        length = chunk_length(values, MOST_ROWS)
        if length:
            return [compiled_sums(values, block, level, length, memory)]
    return in_threads(partial(_sums, rows, block, level), parts_for_threads(rows, block.size))


def parts_for_threads(rows: RawRows, size: int) -> list[slice]:
    """Return a range of rows for each thread, if a row takes `size` multiplications. Padding is left out."""
    held = np.flatnonzero(rows.roots)
    end = int(held[-1]) + 1 if held.size else 0
    threads = min(blas_threads(), max(end // LEAST_ROWS, 1)) if end * size > SMALL else 1
    return [slice(end * i // threads, end * (i + 1) // threads) for i in range(threads)]


def chunk_rows(d: int, *, copied: bool) -> int:
    """Return the number of rows that are multiplied at a time in float32; `copied` is whether they are converted.

    Wide rows do not stay in the cache anyway: fewer sums are better, if rows need not be copied.
    """
    most = CHUNK // d if d <= WIDE or copied else MOST_ROWS
    return min(max(most, LEAST_ROWS), MOST_ROWS)


def _sums(rows: RawRows, block: np.ndarray, level: np.ndarray | None, part: slice) -> BlockSums:
    """Return the sums over some rows by NumPy."""
    b, d = block.shape
    images, along = np.zeros((b, d)), np.zeros(b)
    product = np.empty((b, d), np.float32)
    plain = rows.is_plain_float32(part)
    size = chunk_rows(d, copied=not plain)
    buffer = None if plain else np.empty((size, d), np.float32)
    parts = 0
    for begin in range(part.start, part.stop, size):
        own = slice(begin, min(begin + size, part.stop))
        held = rows.values[own] if buffer is None else rows.in_float32(own, buffer)
        scores = held @ block.T
        if level is not None:
            scores -= rows.roots[own, None].astype(np.float32) * level
        images += np.matmul(scores.T, held, out=product)
        along += rows.roots[own] @ scores
        parts += 1
    return BlockSums(images, along, parts)


def draw_sums(rows: RawRows, draws: np.ndarray, part: slice) -> HostSums:
    """Return the sums of draws (r, d), of rows and of squares, over some rows, without directions in float32."""
    r, d = draws.shape
    size, width = panel_shape(d)
    panels = [slice(begin, min(begin + width, d)) for begin in range(0, d, width)]
    seen, scores, columns, squares = np.zeros((r, d)), np.zeros(r), np.zeros(d), np.zeros(d)
    weight, parts, buffer = np.zeros(()), 0, np.empty((size, width))
    across = np.ascontiguousarray(draws.T)
    for begin in range(part.start, part.stop, size):
        own = slice(begin, min(begin + size, part.stop))
        roots, there = rows.roots[own], np.zeros((own.stop - own.start, r))
        for panel in panels:
            wide = rows.columns_on_host(own, panel, buffer[:, : panel.stop - panel.start])
            there += wide @ across[panel]
            columns[panel] += roots @ wide
            squares[panel] += np.einsum("rf,rf->f", wide, wide)
        for panel in panels:
            if len(panels) > 1:
                wide = rows.columns_on_host(own, panel, buffer[:, : panel.stop - panel.start])
            seen[:, panel] += there.T @ wide
        scores += roots @ there
        weight = weight + np.sum(roots**2)
        parts += 1
    return HostSums(
        np.zeros((0, d)), np.zeros(0), seen, scores, columns, squares, weight, parts, rows=0
    )


def panel_shape(d: int) -> tuple[int, int]:
    """Return the rows and the columns of a panel."""
    if d <= WIDE:
        return max(PANEL // d, 16), d
    # Larger than the cache: products with long panels take less time.
    return LEAST_ROWS, WIDE
