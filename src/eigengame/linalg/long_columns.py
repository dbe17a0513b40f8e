"""A few long columns: their products with rows, and their QR factorisation, by parts in threads.

On one thread each, parts are faster than the threads of BLAS, which wait for each other after every step. Columns
are changed in place, chunk by chunk: new arrays of this size take longer to fill than to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from eigengame._system.blas_threads import blas_threads
from eigengame._system.threads import in_threads

LONG = 2**15
"""Length of columns from which chunks are faster than one factorisation."""

CHUNK = 2**12
"""Entries of each column that are changed at a time: they stay in the cache."""

SMALL, LEAST_PART = 2**20, 2**10
"""Size of a matrix below which one thread is enough, and the least length of the part of a thread."""


def inner_products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the products (m, b) of rows (m, n) with columns (n, b)."""
    parts = _parts(rows)
    found: np.ndarray = sum(in_threads(lambda own: rows[:, own] @ columns[own], parts))
    return found


def subtract_shares(columns: np.ndarray, rows: np.ndarray, shares: np.ndarray) -> None:
    """Subtract rows (m, n), times their shares (m, b), from columns (n, b)."""

    def change(chunk: slice) -> None:
        columns[chunk] -= rows[:, chunk].T @ shares

    _for_chunks(change, rows)


def combine(columns: np.ndarray, shares: np.ndarray) -> None:
    """Replace columns (n, b) by combinations with shares (b, b)."""

    def change(chunk: slice) -> None:
        columns[chunk] = columns[chunk] @ shares

    _for_chunks(change, columns.T)


def factorise_in_place(columns: np.ndarray) -> np.ndarray:
    """Replace columns (n, b) by the first factor of their QR factorisation, and return the second one (b, b).

    The result is as accurate as that of `numpy.linalg.qr`. If columns are long, chunks are factorised, then their
    factors together: that takes a quarter of the time.
    """
    n, b = columns.shape
    if n < LONG:
        columns[:], factor = np.linalg.qr(columns)
        return factor

    def factorise(part: slice) -> np.ndarray:
        factors = []
        for chunk in _chunks(part):
            basis, factor = np.linalg.qr(columns[chunk])
            missing = b - len(factor)  # the last chunk may have fewer rows than columns
            columns[chunk] = np.pad(basis, ((0, 0), (0, missing)))
            factors.append(np.pad(factor, ((0, missing), (0, 0))))
        return np.concatenate(factors)

    parts = _parts(columns.T)
    factors = in_threads(factorise, parts)
    turn, factor = np.linalg.qr(np.concatenate(factors))
    turns = iter(np.split(turn, len(turn) // b))
    pairs = [[(chunk, next(turns)) for chunk in _chunks(part)] for part in parts]

    def rotate(own: list[tuple[slice, np.ndarray]]) -> None:
        for chunk, by in own:
            columns[chunk] = columns[chunk] @ by

    in_threads(rotate, pairs)
    return factor


def _for_chunks(change: Callable[[slice], None], rows: np.ndarray) -> None:
    """Call a function with each range of the entries of rows (m, n) that stays in the cache."""

    def run(part: slice) -> None:
        for chunk in _chunks(part):
            change(chunk)

    in_threads(run, _parts(rows))


def _parts(rows: np.ndarray) -> list[slice]:
    """Return a range of the entries of rows (m, n) for each thread."""
    n = rows.shape[1]
    threads = max(min(blas_threads(), n // LEAST_PART), 1) if rows.size >= SMALL else 1
    return [slice(n * i // threads, n * (i + 1) // threads) for i in range(threads)]


def _chunks(part: slice) -> Iterator[slice]:
    """Iterate over ranges of entries that stay in the cache."""
    for begin in range(part.start, part.stop, CHUNK):
        yield slice(begin, min(begin + CHUNK, part.stop))
