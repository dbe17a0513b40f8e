"""Exclusive lock on a folder, which the operating system releases when the process ends or crashes."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import weakref
from collections.abc import Callable
from pathlib import Path

LOCK = "run.lock"
"""Name of the locked file. It is never deleted: a process could delete the lock of the next run."""

HELD = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN)
"""Error numbers of `flock` when another process holds the lock."""


class FolderInUse(Exception):
    """Another run holds the lock; the message names its process, if known."""


class FolderLock:
    """Lock on a folder, held until `close`.

    Without `flock` in the operating system or the file system, or without write access, nothing is locked.

    Parameters
    ----------
    folder : path
        Must exist.

    Attributes
    ----------
    held : bool
        Whether the folder is locked.
    """

    def __init__(self, folder: Path) -> None:
        self._close: Callable[[], object] | None = None
        self.held = False
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
                raise FolderInUse(owner) from None
            return
        self.held = True
        with contextlib.suppress(OSError):
            os.ftruncate(number, 0)
            os.pwrite(number, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def close(self) -> None:
        """Release the lock."""
        if self._close is not None:
            self._close()


def _release(number: int, owner: int) -> None:
    """Unlock and close the file. A forked child process closes its copy only."""
    import fcntl

    with contextlib.suppress(OSError):
        if os.getpid() == owner:
            fcntl.flock(number, fcntl.LOCK_UN)
    os.close(number)


def _read(number: int) -> str:
    """Return the description that the owner of the lock wrote to the file."""
    with contextlib.suppress(OSError):
        return os.pread(number, 200, 0).decode(errors="replace")
    return ""


def may_be_running(process: int) -> bool:
    """Return whether a process with this id may exist on this machine; True if unknown."""
    if os.name != "posix":  # on Windows os.kill would end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
