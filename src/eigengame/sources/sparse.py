"""SciPy sparse matrices in memory. Blocks stay sparse."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_sparse
from eigengame.sources._file_source import FileSource

UNCHECKED = ("lil", "dok", "dia")
"""Formats whose indices are checked after the conversion to CSR, which does not use them as addresses."""


class SparseSource(FileSource, RandomAccess):
    """Rows of a sparse matrix.

    Parameters
    ----------
    data : SciPy sparse matrix or array of shape (n, d)
        Formats other than CSR are converted once.
    name : str
    """

    sparse = True
    slow = False

    def __init__(self, data: Any, name: str = "sparse matrix") -> None:
        self.data = checked_csr(data, name)
        self.name = name
        self.shape = (self.data.shape[0], self.data.shape[1])
        self.dtype = self.data.dtype

    def read(self, begin: int, end: int) -> csr_array:
        """Return rows `begin` to `end`."""
        pointers = self.data.indptr[begin : end + 1]
        held = slice(pointers[0], pointers[-1])
        entries = (self.data.data[held], self.data.indices[held], pointers - pointers[0])
        return csr_array(entries, shape=(end - begin, self.data.shape[1]))

    def most_entries(self, size: int) -> int:
        """Return the largest number of entries in a block of `size` rows."""
        return most_entries(self.data.indptr, size)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, a digest of row lengths and first entries, and the stamp of a file."""
        rows = hashlib.sha256(np.ascontiguousarray(self.data.indptr).tobytes())
        rows.update(np.ascontiguousarray(self.data.data[:4096]).tobytes())
        return super().fingerprint() | {"rows": rows.hexdigest()[:16]}

    def digest(self) -> str | None:
        """Return a digest of all entries and indices."""
        return digest_of_sparse(self.data)


def checked_csr(data: Any, name: str) -> csr_array:
    """Return a sparse matrix of any format as CSR; raise if an index is outside its shape."""
    check_indices(data, name)
    rows = csr_array(data)
    if data.format in UNCHECKED:
        check_indices(rows, name)
    return rows


def check_indices(data: Any, name: str) -> None:
    """Raise if an index of a sparse matrix is outside its shape.

    Compiled code would read memory that does not belong to the matrix, so all indices are checked before
    any conversion.
    """
    axes = {"row": (0, "row"), "col": (1, "column")}
    try:
        if hasattr(data, "check_format"):  # CSR, CSC and BSR
            _check_pointers(data)
            data.check_format(full_check=True)
        for attribute, (axis, word) in axes.items() if data.format == "coo" else ():
            index = getattr(data, attribute)
            if index.size and not 0 <= index.min() <= index.max() < data.shape[axis]:
                raise ValueError(f"{word} index {index.max()} of {data.shape[axis]}")
    except ValueError as error:
        raise SourceError(
            f"{name} is a sparse matrix with indices outside its shape {data.shape} ({error}): it is "
            "damaged; build it again."
        ) from None


def _check_pointers(data: Any) -> None:
    """Raise ValueError if the pointers of a compressed matrix do not rise from 0 to the number of indices.

    SciPy does not check the pointers of a matrix whose last one is 0, and compares them in 32 bits.
    """
    pointers = np.asarray(data.indptr)
    if pointers.dtype.kind not in "iu" or np.asarray(data.indices).dtype.kind not in "iu":
        raise ValueError("its indices are not integers")
    steps = np.diff(pointers.astype(np.int64))
    if not len(pointers) or pointers[0] != 0 or (steps < 0).any():
        raise ValueError("its pointers do not rise from 0")
    if pointers[-1] > len(data.indices) or len(data.indices) != len(data.data):
        raise ValueError(
            f"it has {pointers[-1]} entries, but {len(data.indices)} indices and {len(data.data)} values"
        )


def most_entries(pointers: np.ndarray, size: int) -> int:
    """Return the largest number of entries in a block of `size` rows, from row pointers (n + 1,)."""
    starts = np.arange(0, len(pointers) - 1, size)
    ends = np.minimum(starts + size, len(pointers) - 1)
    return max(int((pointers[ends] - pointers[starts]).max(initial=1)), 1)
