"""Plain arrays in remote files: rows are fetched as ranges of bytes by fsspec."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_files
from eigengame.sources._paths import file_stamp, file_system
from eigengame.sources._stored_arrays import flat_shape, image_shape, to_native


class RemoteArraySource(RandomAccess):
    """Rows of a plain array in a remote file. Each block is one range of bytes.

    Parameters
    ----------
    url : str
        fsspec address.
    shape : tuple of int
        Shape of the array. Axes after the first are flattened.
    dtype : dtype
        Dtype of the stored numbers.
    offset : int
        Bytes before the first number.
    name : str, optional
    """

    def __init__(
        self, url: str, shape: tuple[int, ...], dtype: Any, offset: int, name: str | None
    ) -> None:
        self.name = name or url
        self.shape = flat_shape(self.name, shape, dtype)
        self.image_shape = image_shape(shape)
        self.dtype = np.dtype(dtype).newbyteorder("=")
        self._url, self._stored, self._offset = url, np.dtype(dtype), offset

    def read(self, begin: int, end: int) -> np.ndarray:
        """Fetch rows `begin` to `end`."""
        row_bytes = self.shape[1] * self._stored.itemsize
        first, last = self._offset + begin * row_bytes, self._offset + end * row_bytes
        files, inside = file_system(self._url)
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
        storage = {"stored": self._stored.str, "offset": self._offset}
        return super().fingerprint() | storage | file_stamp(self._url)

    def digest(self) -> str | None:
        """Return a digest of the file."""
        return digest_of_files([self._url])
