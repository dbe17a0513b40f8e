"""Paths and fsspec addresses: which files they name, how to open them, and whether they have changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from eigengame.sources._base import SourceError


def is_remote(path: str) -> bool:
    """Return whether a path is an fsspec address."""
    return "://" in path


def local_file(path: str | os.PathLike[str], kind: str) -> str:
    """Return the path of a local file; raise if it is an address or does not exist."""
    found = os.fspath(path)
    if is_remote(found):
        raise SourceError(
            f"{found} is an address, but {kind} are read from local disk only: copy the file first."
        )
    if not os.path.isfile(found):
        raise SourceError(f"{found} is not a file: check the path (from {os.getcwd()}).")
    return found


def file_system(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of an address, and the path within it."""
    import fsspec

    try:
        files, inside = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise SourceError(f"{url} cannot be reached: {error}.") from None
    return files, inside


def open_binary(path: str) -> IO[bytes]:
    """Open a local or remote file for reading bytes."""
    if not is_remote(path):
        return open(path, "rb")
    files, inside = file_system(path)
    try:
        return files.open(inside, "rb")
    except OSError as error:
        raise SourceError(
            f"{path} cannot be opened ({error}): check the address and the access rights."
        ) from None


def file_stamp(path: str | None, key: str | None = None) -> dict[str, Any]:
    """Return size and time of a file for a fingerprint, or fsspec's version of a remote one."""
    about: dict[str, Any] = {} if key is None else {"key": key}
    if path is None:
        return about
    if is_remote(path):
        files, inside = file_system(path)
        return about | {"version": str(files.ukey(inside))}
    status = os.stat(path)
    return about | {"bytes": status.st_size, "modified": status.st_mtime_ns}


def file_stamps(paths: Sequence[str]) -> dict[str, Any]:
    """Return the stamps of several files for a fingerprint."""
    return {"files": {path: file_stamp(path) for path in paths}}


def list_files(path: str | os.PathLike[str], endings: tuple[str, ...]) -> list[str]:
    """Return the file at a path, or all files below a folder with one of the endings, sorted.

    Names that begin with "." or "_" are skipped: by convention they are not data.
    """
    address = os.fspath(path)
    found = _remote_files(address) if is_remote(address) else _local_files(Path(address))
    if found is None:
        return [address]
    data_files = [one for one in found if _is_data(one, address, endings)]
    if not data_files:
        raise SourceError(
            f"{address} contains no file that ends in {' or '.join(endings)}: check the folder."
        )
    return sorted(data_files)


def _local_files(path: Path) -> list[str] | None:
    """Return the files below a folder; None if the path is a file."""
    if not path.exists():
        raise SourceError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    return [str(one) for one in path.rglob("*") if one.is_file()] if path.is_dir() else None


def _remote_files(address: str) -> list[str] | None:
    """Return the addresses of the files below a remote folder; None if the address is a file."""
    files, inside = file_system(address)
    try:
        if not files.exists(inside):
            raise SourceError(f"{address} does not exist: check the address.")
        if not files.isdir(inside):
            return None
        return [files.unstrip_protocol(one) for one in files.find(inside)]
    except OSError as error:
        raise SourceError(f"{address} cannot be listed ({error}): check the address.") from None


def _is_data(path: str, root: str, endings: tuple[str, ...]) -> bool:
    """Return whether a file below `root` has one of the endings and is not hidden."""
    below = PurePosixPath(path).parts[len(PurePosixPath(root).parts) :]
    return path.lower().endswith(endings) and not any(one.startswith((".", "_")) for one in below)
