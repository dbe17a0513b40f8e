"""Atomic file writes: a file appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


class StorageError(ValueError):
    """A file could not be written or read; the message names the file and the fix."""


@contextlib.contextmanager
def atomic_write(path: Path, error: type[StorageError] = StorageError) -> Iterator[Path]:
    """Yield a temporary path to write to, and rename it to `path` once it is complete and on disk."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        # The usual permissions of a new file: some libraries create private files.
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    except OSError as failure:
        raise error(not_written(path, failure)) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def not_written(path: Path, failure: OSError) -> str:
    """Return the message for a path that could not be written."""
    return (
        f"{path} could not be written ({failure.strerror or failure}): any earlier version is unchanged; "
        "free some space or choose another location, and run again."
    )


def _umask() -> int:
    """Return the umask of the process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
