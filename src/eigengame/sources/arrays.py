"""Arrays in memory or mapped from disk: rows are views, nothing is copied here."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_array


class ArraySource(RandomAccess):
    """Rows of a two-dimensional array.

    Parameters
    ----------
    data : array of shape (n, d)
        NumPy, or a memory map: it is read a block at a time.
    name : str
    """

    views = True

    def __init__(self, data: np.ndarray, name: str = "array") -> None:
        refuse_unless_table(name, data.shape)
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


def refuse_unless_table(name: str, shape: Sequence[int]) -> None:
    """Raise if an array does not have two axes, and say how to reshape it."""
    if len(shape) == 2:
        return
    fix = (
        "reshape(len(x), -1) gives one row for each entry of the first axis."
        if len(shape) > 2
        else "reshape(1, -1) gives one row, reshape(-1, 1) one feature."
    )
    raise SourceError(
        f"{name} has shape {tuple(shape)}: give an array of shape (rows, features); {fix}"
    )
