"""Sparse blocks of a source as rows of the game: on the host for SciPy, or on devices for XLA."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.sparse import csr_array

from eigengame.game.csr_rows import CSRRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.sharding.placement import ONE_DEVICE, Placement


def csr_on_host(placement: Placement) -> bool:
    """Return whether sparse rows are multiplied on the host: on one CPU."""
    return placement.mesh is None and jax.default_backend() == "cpu"


def csr_rows(values: Any, roots: np.ndarray, unit: float = 1.0) -> CSRRows:
    """Return CSR rows, divided by `unit` and multiplied by the roots of their weights, in the dtype of these."""
    values = without_duplicates(values)
    entries = values.data if unit == 1 else values.data / unit
    entries = entries.astype(roots.dtype, copy=False)
    if (roots != 1).any():
        entries = entries * np.repeat(roots, np.diff(values.indptr))
    return CSRRows(csr_array((entries, values.indices, values.indptr), shape=values.shape), roots)


def without_duplicates(values: Any) -> Any:
    """Return CSR rows in which no position has several entries. Their squares do not add up to that of the sum."""
    if values.has_canonical_format:
        return values
    values = values.copy()
    values.sum_duplicates()
    return values


def sparse_rows(
    values: Any,
    weights: np.ndarray,
    dtype: Any,
    room: int | None,
    placement: Placement = ONE_DEVICE,
    unit: float = 1.0,
) -> SparseRows:
    """Return CSR rows, divided by `unit`, with space for `room` entries or for the next power of two."""
    values = without_duplicates(values)
    count, size = int(values.nnz), len(weights)
    places = room if room is not None else max(64, 1 << (count - 1).bit_length())
    entries = np.zeros(places, dtype)
    row = np.full(places, size - 1, np.int32)
    column = np.zeros(places, np.int32)
    entries[:count] = values.data if unit == 1 else values.data / unit
    column[:count] = values.indices
    row[:count] = np.repeat(np.arange(values.shape[0], dtype=np.int32), np.diff(values.indptr))
    return SparseRows(
        placement.replicated(entries),
        placement.replicated(row),
        placement.replicated(column),
        placement.replicated(weights),
        features=placement.width(values.shape[1]),
    )
