"""One run for each folder: a lock that the system takes back when a process ends, however that is."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import weakref
from collections.abc import Callable
from pathlib import Path

LOCK = "run.lock"
"""The file that is locked. It stays: whoever removes it could remove the lock of the next run."""

HELD = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN)
"""What the system answers where another process has the lock."""


class InUse(Exception):
    """Another run holds the folder; the text says which process, where it is known."""


class FolderLock:
    """The lock of a folder, held until `close`.

    Where the system or the file system has no `flock`, or the folder cannot be written to, nothing is locked.

    Parameters
    ----------
    folder : path
        Must exist.
    """

    def __init__(self, folder: Path) -> None:
        self._close: Callable[[], object] | None = None
        try:
            import fcntl

            number = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except (ImportError, OSError):
            return
        self._close = weakref.finalize(self, _release, number, os.getpid())
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _read(number)
            self.close()
            if error.errno in HELD:
                raise InUse(owner) from None
            return
        with contextlib.suppress(OSError):
            os.ftruncate(number, 0)
            os.pwrite(number, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def close(self) -> None:
        """Give the folder to the next run."""
        if self._close is not None:
            self._close()


def _release(number: int, owner: int) -> None:
    """Unlock and close the file; a forked child has a copy of it, and only closes that."""
    import fcntl

    with contextlib.suppress(OSError):
        if os.getpid() == owner:
            fcntl.flock(number, fcntl.LOCK_UN)
    os.close(number)


def _read(number: int) -> str:
    """Return what the owner of the lock wrote about itself."""
    with contextlib.suppress(OSError):
        return os.pread(number, 200, 0).decode(errors="replace")
    return ""


def alive(process: int) -> bool:
    """Say whether a process with this id may still run on this machine; True where nobody can tell."""
    if os.name != "posix":  # elsewhere the same call ends the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
