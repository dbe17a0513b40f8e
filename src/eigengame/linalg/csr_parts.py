"""Rows of a sparse matrix in parts that are not copied, multiplied by several threads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from eigengame._system.threads import in_threads

SMALL = 2**21
"""Multiplications below which a product runs on one thread."""


def rows_of(matrix: csr_array, begin: int, end: int) -> csr_array:
    """Return the rows from `begin` to `end`, which share their entries with the matrix."""
    pointers = matrix.indptr[begin : end + 1]
    held = slice(pointers[0], pointers[-1])
    entries = (matrix.data[held], matrix.indices[held], pointers - pointers[0])
    return csr_array(entries, shape=(end - begin, matrix.shape[1]))


def even_ranges(matrix: csr_array, count: int) -> list[tuple[int, int]]:
    """Return ranges of rows with about equally many entries, `count` of them or fewer."""
    pointers, n = matrix.indptr, matrix.shape[0]
    count = max(min(count, n), 1)
    shares = np.arange(1, count) * (pointers[-1] / count)
    ends = [0, *np.searchsorted(pointers, shares).tolist(), n]
    return list(itertools.pairwise(ends))


def product(parts: Sequence[csr_array], dense: np.ndarray) -> np.ndarray:
    """Return the product of all rows, given in parts, with a dense array (d, m), shape (n, m).

    The sums are those of one product of all rows, in the same order.
    """
    dense = np.ascontiguousarray(dense)
    if len(parts) == 1 or sum(part.nnz for part in parts) * dense.shape[1] < SMALL:
        found = [part @ dense for part in parts]
    else:
        found = in_threads(lambda part: part @ dense, parts)
    return found[0] if len(found) == 1 else np.concatenate(found)
