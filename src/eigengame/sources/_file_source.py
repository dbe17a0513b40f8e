"""Sources that are read from one file."""

from __future__ import annotations

from typing import Any

from eigengame.sources._base import Source
from eigengame.sources._digest import digest_of_blocks, digest_of_files
from eigengame.sources._paths import file_stamp


class FileSource(Source):
    """Source whose fingerprint and digest are those of a file.

    Attributes
    ----------
    path : str, optional
        Local path or address; None if the user opened the file.
    key : str, optional
        Place of the data in the file.
    """

    path: str | None = None
    key: str | None = None

    def fingerprint(self) -> dict[str, Any]:
        """Return shape and dtype, and size and time of the file."""
        return super().fingerprint() | file_stamp(self.path, self.key)

    def digest(self) -> str | None:
        """Return a digest of the file, or of all rows if there is no path."""
        return digest_of_blocks(self) if self.path is None else digest_of_files([self.path])
