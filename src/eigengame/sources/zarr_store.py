"""Zarr, version 2 and 3: one array of a store by blocks.

Local folders, and addresses that fsspec knows. A chunk that is not there is read as the array's fill value:
that is how Zarr stores what was never written.
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
from eigengame.sources._stored_arrays import Array, chosen, is_remote


class ZarrSource(ChunkedArraySource):
    """Rows of one Zarr array; axes after the first are flattened.

    Parameters
    ----------
    array : zarr.Array
        Any thread may read it.
    name : str
    """

    def __init__(self, array: Any, name: str) -> None:
        super().__init__(name, array.shape, array.dtype, array.chunks)
        self._array = array

    def opened(self) -> AbstractContextManager[Any]:
        """Give the array."""
        return contextlib.nullcontext(self._array)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, and sizes and times of a local store's files; elsewhere a few rows."""
        if self._root is None:
            return super().fingerprint() | {"rows": self._few()}
        files, size, newest = 0, 0, 0
        for folder, _, names in os.walk(Path(self._root) / self._array.path):
            for name in names:
                seen = os.stat(os.path.join(folder, name))
                files, size, newest = files + 1, size + seen.st_size, max(newest, seen.st_mtime_ns)
        return super().fingerprint() | {"files": files, "bytes": size, "modified": newest}

    def digest(self) -> str | None:
        """Return a digest of a local store's files; of any other store, such as one in memory, of all rows."""
        if self._root is None:
            return digest_of_blocks(self)
        root = Path(self._root) / self._array.path
        paths = sorted(str(one) for one in root.rglob("*") if one.is_file())
        names = [os.path.relpath(path, root) for path in paths]
        return digest_of_texts([*names, digest_of_files(paths)])

    @property
    def _root(self) -> Any:
        """The folder of a local store."""
        return getattr(self._array.store, "root", None)

    def _few(self) -> str:
        """Return a digest of the first row and the last."""
        rows = self.shape[0]
        assert rows is not None
        seen = hashlib.sha256(np.ascontiguousarray(self.read(0, 1)).tobytes())
        seen.update(np.ascontiguousarray(self.read(rows - 1, rows)).tobytes())
        return seen.hexdigest()[:16]


def open_zarr(
    path: str | os.PathLike[str], key: str | None = None, name: str | None = None
) -> Source:
    """Return the rows of an array of a Zarr store.

    Parameters
    ----------
    path : path or address
        A folder, or an address that fsspec knows.
    key : str, optional
        Which array; not needed where only one has rows of numbers.
    name : str, optional
    """
    import zarr

    found = os.fspath(path)
    if not is_remote(found) and not os.path.exists(found):
        raise SourceError(f"{found} does not exist: check the path (from {os.getcwd()}).")
    try:
        # Zarr keeps "memory://" for itself: every address goes to fsspec.
        store = (
            zarr.storage.FsspecStore.from_url(found, read_only=True) if is_remote(found) else found
        )
        place = zarr.open(store, mode="r")
    except Exception as error:  # stores raise what they like
        raise SourceError(f"{found} cannot be opened as a Zarr store ({error}).") from error
    return from_array(place, key, name or found)


def from_array(data: Any, key: str | None = None, name: str | None = None) -> Source:
    """Return the rows of a zarr array, or of one array of a zarr group."""
    import zarr

    # A store in memory is called by its address there, which says nothing of what it holds.
    name = name or re.sub(r"^memory://\d+", "memory:", str(data.store_path))
    if isinstance(data, zarr.Array):
        if key is not None:
            raise SourceError(f"{name} is one array, without keys: leave out key={key!r}.")
        return ZarrSource(data, name)
    arrays = {
        where: node for where, node in data.members(max_depth=None) if isinstance(node, zarr.Array)
    }
    found = {where: Array(node.shape, np.dtype(node.dtype)) for where, node in arrays.items()}
    group = None if key is None else f"{key.strip('/')}/"
    inside = {where: found[where] for where in found if group and where.startswith(group)}
    where = chosen(f"{name}:{key}", inside, None) if inside else chosen(name, found, key)
    return ZarrSource(arrays[where], f"{name}:{where}")
