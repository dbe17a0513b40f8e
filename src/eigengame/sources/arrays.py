"""Arrays in memory or mapped from disk: rows are views, nothing is copied here."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from eigengame.sources._base import Random
from eigengame.sources._digest import digest_of_array


class ArraySource(Random):
    """Rows of a two-dimensional array.

    Parameters
    ----------
    data : array of shape (n, d)
        NumPy, or a memory map: it is read a block at a time.
    name : str
    """

    views = True

    def __init__(self, data: np.ndarray, name: str = "array") -> None:
        self.data = data
        self.name = name
        self.shape = (data.shape[0], data.shape[1])
        self.dtype = data.dtype
        self.slow = isinstance(data, np.memmap)

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end` as a view."""
        return self.data[begin:end]

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype and a digest of a few rows."""
        n = len(self.data)
        few = np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int))
        digest = hashlib.sha256(np.ascontiguousarray(self.data[few]).tobytes()).hexdigest()
        return super().fingerprint() | {"rows": digest[:16]}

    def digest(self) -> str | None:
        """Return a digest of all numbers."""
        return digest_of_array(self.data)
