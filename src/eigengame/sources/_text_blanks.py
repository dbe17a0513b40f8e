"""Text tables whose fields are separated by any number of blanks."""

from __future__ import annotations

import io
import re
from typing import IO, Any

from eigengame.sources._text_format import too_long


class CollapsedBlanks(io.RawIOBase):
    """Text with each run of blanks and tabs replaced by one blank, and none at the ends of lines.

    Parameters
    ----------
    file : binary file
        At the beginning of a line.
    path : str
        For messages.
    limit : int
        Largest number of bytes of a line.
    """

    def __init__(self, file: IO[bytes], path: str, limit: int) -> None:
        self._file, self._path, self._limit = file, path, limit
        self._rest, self._ready = b"", b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return the number of bytes."""
        while not self._ready:
            chunk = self._file.read(2**20)
            if len(self._rest) > self._limit:
                raise too_long(self._path, None, self._limit)
            if not chunk and not self._rest:
                return 0
            whole, end, rest = (self._rest + chunk).rpartition(b"\n")
            lines, self._rest = (whole + end, rest) if chunk else (self._rest, b"")
            single = re.sub(rb"[ \t]+", b" ", lines)
            self._ready = re.sub(rb"(?m)^ | (?=\r?$)", b"", single)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count
