"""Release files that a library reads on its own threads, before Python shuts down.

Arrow reads from Python files on threads of its own, which need Python to release a file. If that happens while
Python shuts down, the process aborts. The traceback of an error keeps the generators that it passed through, and
their files, alive until then. So they are closed earlier.
"""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from collections.abc import Generator
from typing import Any

PATIENCE = 1.0
"""Seconds to wait at exit until all files are released."""

_generators: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()
_files: weakref.WeakSet[Any] = weakref.WeakSet()


def closed_at_exit(found: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """Return a generator that is closed when the process exits, if it is still open then."""
    _generators.add(found)
    return found


def released_before_exit(file: Any) -> Any:
    """Return a file; the process waits for its release before it exits."""
    _files.add(file)
    return file


def close_all() -> None:
    """Close the generators that are still open, and wait until their files are released."""
    for found in list(_generators):
        with contextlib.suppress(ValueError):  # another thread runs it
            found.close()
    end = time.monotonic() + PATIENCE
    while len(_files) and time.monotonic() < end:
        time.sleep(1e-3)  # lets other threads run


atexit.register(close_all)
