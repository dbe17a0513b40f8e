"""Plain arrays in remote files: rows are fetched as ranges of bytes by fsspec."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame.sources._base import SourceError
from eigengame.sources._paths import file_system
from eigengame.sources._stored_arrays import StoredArraySource, to_native


class RemoteArraySource(StoredArraySource):
    """Rows of a plain array in a remote file. Each block is one range of bytes.

    Parameters
    ----------
    url : str
        fsspec address.
    shape, dtype
        As in `StoredArraySource`.
    offset : int
        Bytes before the first number.
    name : str, optional
    """

    path: str

    def __init__(
        self, url: str, shape: tuple[int, ...], dtype: Any, offset: int, name: str | None
    ) -> None:
        super().__init__(name or url, shape, dtype)
        self.path, self._stored, self._offset = url, np.dtype(dtype), offset

    def read(self, begin: int, end: int) -> np.ndarray:
        """Fetch rows `begin` to `end`."""
        row_bytes = self.shape[1] * self._stored.itemsize
        first, last = self._offset + begin * row_bytes, self._offset + end * row_bytes
        files, inside = file_system(self.path)
        try:
            fetched = files.cat_file(inside, start=first, end=last)
        except OSError as error:
            raise SourceError(
                f"{self.name}: rows {begin} to {end} cannot be read ({error})."
            ) from None
        if len(fetched) < last - first:
            raise SourceError(
                f"{self.name} is truncated: rows {begin} to {end} need {last - first} bytes, but the file "
                f"has {len(fetched)}: copy it again."
            )
        return to_native(np.frombuffer(fetched, self._stored).reshape(end - begin, -1))

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, storage format, and fsspec's version of the file."""
        return super().fingerprint() | {"stored": self._stored.str, "offset": self._offset}
