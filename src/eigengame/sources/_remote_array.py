"""Files elsewhere, by fsspec: rows of a plain array fetched as ranges of bytes."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_files
from eigengame.sources._stored_arrays import flat_shape, image_shape, native, stamp


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path within it."""
    import fsspec

    try:
        files, inside = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise SourceError(f"{url} cannot be reached: {error}.") from None
    return files, inside


def opened(url: str) -> IO[bytes]:
    """Return a remote file, open for reading."""
    files, inside = file_system(url)
    try:
        return files.open(inside, "rb")
    except OSError as error:
        raise SourceError(
            f"{url} cannot be opened ({error}): check the address and the access to it."
        ) from None


class RemoteArraySource(RandomAccess):
    """Rows of a plain array in a remote file: each block is one range of bytes.

    Parameters
    ----------
    url : str
        An address that fsspec knows.
    shape : tuple of int
        Of the array; axes after the first are flattened.
    dtype : dtype
    offset : int
        Bytes before the first number.
    name : str, optional
    """

    def __init__(
        self, url: str, shape: tuple[int, ...], dtype: Any, offset: int, name: str | None = None
    ) -> None:
        self.name = name or url
        self.shape = flat_shape(self.name, shape, dtype)
        self.image_shape = image_shape(shape)
        self.dtype = np.dtype(dtype).newbyteorder("=")
        self._url, self._stored, self._offset = url, np.dtype(dtype), offset

    def read(self, begin: int, end: int) -> np.ndarray:
        """Fetch rows `begin` to `end`."""
        width = self.shape[1] * self._stored.itemsize
        first, last = self._offset + begin * width, self._offset + end * width
        files, inside = file_system(self._url)
        try:
            fetched = files.cat_file(inside, start=first, end=last)
        except OSError as error:
            raise SourceError(
                f"{self.name}: rows {begin} to {end} cannot be read ({error})."
            ) from None
        if len(fetched) < last - first:
            raise SourceError(
                f"{self.name} is truncated: rows {begin} to {end} take {last - first} bytes, but "
                f"{len(fetched)} are there; copy it again."
            )
        return native(np.frombuffer(fetched, self._stored).reshape(end - begin, -1))

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, how numbers lie in the file, and what fsspec knows of it."""
        lies = {"stored": self._stored.str, "offset": self._offset}
        return super().fingerprint() | lies | stamp(self._url)

    def digest(self) -> str | None:
        """Return a digest of the file."""
        return digest_of_files([self._url])
