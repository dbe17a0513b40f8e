"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


class StorageError(ValueError):
    """A file that could not be written or read; the message says which and what to do."""


@contextlib.contextmanager
def written_whole(path: Path, error: type[StorageError] = StorageError) -> Iterator[Path]:
    """Give another name to write to, and put the file in its place only when it is whole and on disk."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(
            draft, 0o666 & ~_umask()
        )  # as any file is made; some libraries make theirs private
        os.replace(draft, path)
    except OSError as failure:
        raise error(
            f"{path} could not be written ({failure.strerror or failure}): what was written before is still "
            "good; make room or give another place, and run again."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _umask() -> int:
    """Return the rights that new files are not given; to be asked for, they must be set."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
