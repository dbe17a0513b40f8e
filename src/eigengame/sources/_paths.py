"""Which files a path means, here or elsewhere, and how to open each of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from eigengame.sources import _remote_array
from eigengame.sources._base import SourceError
from eigengame.sources._stored_arrays import is_remote, stamp


def paths_of(path: str | os.PathLike[str], endings: tuple[str, ...]) -> list[str]:
    """Return the file at a path, or all files with such endings in a folder and below, sorted.

    Names that begin with "." or "_" are passed over: that is how others mark what is no data. Addresses
    such as "s3://..." or "memory://..." are for fsspec.
    """
    address = os.fspath(path)
    found = _remote_files(address) if is_remote(address) else _local_files(Path(address))
    if found is None:
        return [address]
    below = [one for one in found if _is_data(one, address, endings)]
    if not below:
        raise SourceError(
            f"{address} holds no file that ends in {' or '.join(endings)}: check the folder."
        )
    return sorted(below)


def opened(path: str) -> IO[bytes]:
    """Return a file, open for reading bytes."""
    return _remote_array.opened(path) if is_remote(path) else open(path, "rb")


def stamps(paths: Sequence[str]) -> dict[str, Any]:
    """Return what tells files from changed ones, for a fingerprint."""
    return {"files": {path: stamp(path) for path in paths}}


def _local_files(path: Path) -> list[str] | None:
    """Return the files of a folder; None for a file."""
    if not path.exists():
        raise SourceError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    return [str(one) for one in path.rglob("*") if one.is_file()] if path.is_dir() else None


def _remote_files(address: str) -> list[str] | None:
    """Return the addresses of the files of a remote folder; None for a file."""
    files, inside = _remote_array.file_system(address)
    try:
        if not files.exists(inside):
            raise SourceError(f"{address} does not exist: check the address.")
        if not files.isdir(inside):
            return None
        return [files.unstrip_protocol(one) for one in files.find(inside)]
    except OSError as error:
        raise SourceError(f"{address} cannot be listed ({error}): check the address.") from None


def _is_data(found: str, root: str, endings: tuple[str, ...]) -> bool:
    """Say whether a file below the root is one of those meant."""
    below = PurePosixPath(found).parts[len(PurePosixPath(root).parts) :]
    return found.lower().endswith(endings) and not any(one.startswith((".", "_")) for one in below)
