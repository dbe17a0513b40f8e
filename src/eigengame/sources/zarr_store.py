"""Zarr stores, version 2 and 3: one array, read in blocks.

Stores can be local folders or fsspec addresses. A missing chunk is read as the array's fill value: Zarr does not
write chunks that were never assigned.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._chunked_array import ChunkedArraySource
from eigengame.sources._digest import digest_of_blocks, digest_of_files, digest_of_texts
from eigengame.sources._paths import is_remote
from eigengame.sources._stored_arrays import ArrayInfo, choose_array


class ZarrSource(ChunkedArraySource):
    """Rows of one Zarr array. Axes after the first are flattened.

    Parameters
    ----------
    array : zarr.Array
    name : str
    max_bytes : int, optional
        Largest size of a chunk. Defaults to 4 GiB.
    """

    def __init__(self, array: Any, name: str, max_bytes: int | None = None) -> None:
        super().__init__(name, array.shape, array.dtype, array.chunks, max_bytes)
        self._array = array

    def open_array(self) -> AbstractContextManager[Any]:
        """Return the array, which any thread may read."""
        return contextlib.nullcontext(self._array)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, and size and time of a local store's files, or a digest of two rows."""
        if self._root is None:
            return super().fingerprint() | {"rows": self._digest_of_two_rows()}
        files, size, newest = 0, 0, 0
        for folder, _, names in os.walk(Path(self._root) / self._array.path):
            for name in names:
                seen = os.stat(os.path.join(folder, name))
                files, size, newest = files + 1, size + seen.st_size, max(newest, seen.st_mtime_ns)
        return super().fingerprint() | {"files": files, "bytes": size, "modified": newest}

    def digest(self) -> str | None:
        """Return a digest of a local store's files, or of all rows of any other store."""
        if self._root is None:
            return digest_of_blocks(self)
        root = Path(self._root) / self._array.path
        paths = sorted(str(one) for one in root.rglob("*") if one.is_file())
        names = [os.path.relpath(path, root) for path in paths]
        return digest_of_texts([*names, digest_of_files(paths)])

    @property
    def _root(self) -> Any:
        """Folder of a local store, else None."""
        return getattr(self._array.store, "root", None)

    def _digest_of_two_rows(self) -> str:
        """Return a digest of the first and the last row."""
        rows = self.shape[0]
        assert rows is not None
        seen = hashlib.sha256(np.ascontiguousarray(self.read(0, 1)).tobytes())
        seen.update(np.ascontiguousarray(self.read(rows - 1, rows)).tobytes())
        return seen.hexdigest()[:16]


def open_zarr(
    path: str | os.PathLike[str],
    key: str | None = None,
    name: str | None = None,
    max_bytes: int | None = None,
) -> Source:
    """Return the rows of an array in a Zarr store.

    Parameters
    ----------
    path : path or address
    key : str, optional
        Array or group. Not needed if only one array has rows of numbers.
    name : str, optional
        Defaults to the path.
    max_bytes : int, optional
        Largest size of a chunk. Defaults to 4 GiB.
    """
    import zarr

    found = os.fspath(path)
    if not is_remote(found) and not os.path.exists(found):
        raise SourceError(f"{found} does not exist: check the path (from {os.getcwd()}).")
    try:
        # Zarr has its own meaning of "memory://", so all addresses are opened by fsspec.
        store = (
            zarr.storage.FsspecStore.from_url(found, read_only=True) if is_remote(found) else found
        )
        place = zarr.open(store, mode="r")
    except Exception as error:  # stores raise errors of any type
        raise SourceError(f"{found} cannot be opened as a Zarr store ({error}).") from error
    return from_array(place, key, name or found, max_bytes)


def from_array(
    data: Any, key: str | None = None, name: str | None = None, max_bytes: int | None = None
) -> Source:
    """Return the rows of a zarr array, or of one array of a zarr group."""
    import zarr

    # The address of a store in memory changes with every process.
    name = name or re.sub(r"^memory://\d+", "memory:", str(data.store_path))
    if isinstance(data, zarr.Array):
        if key is not None:
            raise SourceError(f"{name} is one array, without keys: leave out key={key!r}.")
        return ZarrSource(data, name, max_bytes)
    arrays = {
        where: node for where, node in data.members(max_depth=None) if isinstance(node, zarr.Array)
    }
    found = {where: ArrayInfo(node.shape, np.dtype(node.dtype)) for where, node in arrays.items()}
    group = None if key is None else f"{key.strip('/')}/"
    inside = {where: found[where] for where in found if group and where.startswith(group)}
    where = (
        choose_array(f"{name}:{key}", inside, None) if inside else choose_array(name, found, key)
    )
    return ZarrSource(arrays[where], f"{name}:{where}", max_bytes)
