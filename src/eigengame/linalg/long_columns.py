"""A few long columns: their products with rows, and their QR factorisation, by parts in threads.

On one thread each, parts are faster than the threads of BLAS, which wait for each other after every step.
"""

from __future__ import annotations

import numpy as np

from eigengame._system.blas_threads import blas_threads
from eigengame._system.threads import in_threads

LONG = 2**15
"""Length of columns from which chunks are faster than one factorisation."""

CHUNK = 2**12
"""Entries of each column that are factorised at a time: they stay in the cache."""

SMALL = 2**20
"""Size of a matrix below which one thread is enough."""


def inner_products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the products (m, b) of rows (m, n) with columns (n, b)."""
    parts = _parts(rows)
    found: np.ndarray = sum(in_threads(lambda own: rows[:, own] @ columns[own], parts))
    return found


def without(columns: np.ndarray, rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return columns (n, b) minus rows (m, n) times their shares (m, b)."""
    found = np.empty(columns.shape)

    def fill(own: slice) -> None:
        np.subtract(columns[own], rows[:, own].T @ shares, out=found[own])

    in_threads(fill, _parts(rows))
    return found


def combined(columns: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return combinations (n, c) of columns (n, b) by their shares (b, c)."""
    found = np.empty((len(columns), shares.shape[1]))

    def fill(own: slice) -> None:
        np.matmul(columns[own], shares, out=found[own])

    in_threads(fill, _parts(columns.T))
    return found


def thin_qr(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal columns (n, b) and the factor (b, b), as accurate as `numpy.linalg.qr`.

    If columns are long, chunks are factorised, and their factors together: that takes a quarter of the time.
    """
    n, b = columns.shape
    if n < LONG:
        return np.linalg.qr(columns)
    found = np.empty((n, b))

    def factorise(own: slice) -> np.ndarray:
        factors = []
        for chunk in _chunks(own):
            basis, factor = np.linalg.qr(columns[chunk])
            found[chunk, : len(factor)] = basis  # the last chunk may have fewer rows than columns
            found[chunk, len(factor) :] = 0
            factors.append(np.pad(factor, ((0, b - len(factor)), (0, 0))))
        return np.concatenate(factors)

    parts = _parts(columns.T)
    factors = in_threads(factorise, parts)
    turn, factor = np.linalg.qr(np.concatenate(factors))
    ends = np.cumsum([len(own) for own in factors])[:-1]

    def combine(part: tuple[slice, np.ndarray]) -> None:
        chunks = list(_chunks(part[0]))
        for chunk, own in zip(chunks, np.split(part[1], len(chunks)), strict=True):
            found[chunk] = found[chunk] @ own

    in_threads(combine, list(zip(parts, np.split(turn, ends), strict=True)))
    return found, factor


def _parts(rows: np.ndarray) -> list[slice]:
    """Return a range of the entries of rows (m, n) for each thread."""
    n = rows.shape[1]
    threads = max(min(blas_threads(), n // CHUNK), 1) if rows.size >= SMALL else 1
    return [slice(n * i // threads, n * (i + 1) // threads) for i in range(threads)]


def _chunks(own: slice) -> list[slice]:
    """Return ranges of entries that stay in the cache."""
    begins = range(own.start, own.stop, CHUNK)
    return [slice(begin, min(begin + CHUNK, own.stop)) for begin in begins]
