"""HDF5 files for writing, on disks that may be full.

libhdf5 cannot close a file after a write to it has failed: the process ends by a segmentation fault. It is
therefore given a file object that never fails. The first error is kept, and raised when the file is closed.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class FileWithoutErrors(io.RawIOBase):
    """A binary file for h5py whose methods do not raise.

    `error` is the first failure, after which nothing is written.

    Parameters
    ----------
    path : path
        Opened for reading and writing; created if necessary.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._position = 0
        self.error: BaseException | None = None

    @contextlib.contextmanager
    def _kept_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # an interrupt must not reach libhdf5 either
            self.error = self.error or error

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position, and return it."""
        start = {
            os.SEEK_SET: 0,
            os.SEEK_CUR: self._position,
            os.SEEK_END: os.fstat(self._descriptor).st_size,
        }
        self._position = start[whence] + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; with zeros beyond the end of the file, where a write may have failed."""
        view = memoryview(buffer).cast("B")
        done = 0
        with self._kept_errors():
            while done < len(view):
                found = os.pread(self._descriptor, len(view) - done, self._position + done)
                if not found:
                    break
                view[done : done + len(found)] = found
                done += len(found)
        view[done:] = bytes(len(view) - done)
        self._position += len(view)
        return len(view)

    def write(self, data: Any) -> int:
        """Write all bytes, unless a write failed before."""
        view = memoryview(data).cast("B")
        with self._kept_errors():
            done = 0
            while self.error is None and done < len(view):
                done += os.pwrite(self._descriptor, view[done:], self._position + done)
        self._position += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file, unless a write failed before."""
        length = self._position if size is None else size
        with self._kept_errors():
            if self.error is None:
                os.ftruncate(self._descriptor, length)
        return length

    def flush(self) -> None:
        """Do nothing, because no bytes are held back."""

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            with self._kept_errors():
                os.close(self._descriptor)
        super().close()

    def raise_error(self) -> None:
        """Raise the first error, if there was one."""
        if self.error is not None:
            raise self.error


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[tuple[Any, FileWithoutErrors]]:
    """Open an HDF5 file for writing; errors are raised at the end, or by `FileWithoutErrors.raise_error` before.

    Yields
    ------
    file : h5py.File
    output : FileWithoutErrors
    """
    import h5py

    existing = path.exists() and path.stat().st_size > 0
    with (
        contextlib.closing(FileWithoutErrors(path)) as output,
        h5py.File(output, "r+" if existing else "w") as file,
    ):
        yield file, output
    output.raise_error()
