"""NumPy and JAX arrays in memory, and NumPy memory maps."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_array
from eigengame.sources._file_source import FileSource


class ArraySource(FileSource, RandomAccess):
    """Rows of a two-dimensional array. Blocks are views.

    Parameters
    ----------
    data : array of shape (n, d)
    name : str
    """

    views = True

    def __init__(self, data: np.ndarray, name: str = "array") -> None:
        check_two_axes(name, data.shape)
        self.data: Any = data
        self.name = name
        self.shape = (data.shape[0], data.shape[1])
        self.dtype = data.dtype
        self.slow = isinstance(data, np.memmap)

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end` as a view."""
        self._check_map()
        return self.data[begin:end]

    def _check_map(self) -> None:
        """Raise if the file of a memory map is shorter than the map: reading its end would kill the process."""
        mapped = self.data
        # An array that is a view of a memory map, such as that of np.asarray, has the map as its base.
        while mapped is not None and getattr(mapped, "_mmap", None) is None:
            mapped = getattr(mapped, "base", None)
        pages = None if mapped is None else mapped._mmap
        if pages is not None and pages.size() < len(pages):
            raise SourceError(
                f"{self.name} is a memory map of {len(pages)} bytes, but its file {mapped.filename} has only "
                f"{pages.size()}: it was truncated after it was mapped; write it again."
            )

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype and a digest of a few rows; for a loaded array also the file's stamp."""
        n = len(self.data)
        few = np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int))
        digest = hashlib.sha256(np.ascontiguousarray(self.data[few]).tobytes()).hexdigest()
        return super().fingerprint() | {"rows": digest[:16]}

    def digest(self) -> str | None:
        """Return a digest of all numbers."""
        return digest_of_array(self.data)


def from_jax(data: Any, name: str = "X") -> ArraySource:
    """Return the source of a JAX array, copied to the host if necessary."""
    return ArraySource(np.asarray(data), name)


def check_two_axes(name: str, shape: Sequence[int]) -> None:
    """Raise if an array does not have two axes; the message shows how to reshape it."""
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
