"""Atomic writes: a file or folder appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


class StorageError(ValueError):
    """A file could not be written or read; the message names the file and the fix."""


@contextlib.contextmanager
def atomic_write(path: Path, error: type[StorageError] = StorageError) -> Iterator[Path]:
    """Yield a temporary path for a file or folder, and rename it to `path` once it is complete."""
    draft = _draft_of(path)
    try:
        yield draft
        (_replace_folder if draft.is_dir() else _replace_file)(draft, path)
    except OSError as failure:
        raise error(
            f"{path} could not be written ({failure.strerror or failure}): any earlier version is unchanged; "
            "free some space or choose another location, and run again."
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _draft_of(path: Path) -> Path:
    """Return a temporary path beside `path` that no other thread, process or machine uses."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")


def refuse_unless_writable(path: Path) -> None:
    """Raise OSError if a file cannot be written to this path; nothing is left behind."""
    draft = _draft_of(path)
    try:
        draft.open("xb").close()
    finally:
        draft.unlink(missing_ok=True)


def _replace_file(draft: Path, path: Path) -> None:
    """Flush a file to disk, and move it to `path`."""
    with open(draft, "rb+") as file:
        os.fsync(file.fileno())
    # The usual permissions of a new file: some libraries create private files.
    os.chmod(draft, 0o666 & ~_umask())
    os.replace(draft, path)


def _replace_folder(draft: Path, path: Path) -> None:
    """Move a folder to `path`; restore the old one if that fails."""
    old = draft.with_name(f"{draft.name}.old")
    if path.exists():
        path.rename(old)
    try:
        draft.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    """Return the umask of the process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
