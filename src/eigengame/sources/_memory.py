"""Limits on memory: data that must be in memory as a whole is refused if it is too large.

Compressed files can be a thousand times smaller than their content. `max_bytes`, an option of `as_source`, is the
largest size of one part that cannot be read in pieces: a line of text, an image, a compressed array or chunk.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from eigengame._system import memory
from eigengame.sources._base import SourceError

MAX_ARRAY = 2**32
"""Default of `max_bytes` for arrays, chunks and sparse matrices."""

MAX_ITEM = 2**28
"""Default of `max_bytes` for one image or one line of text."""


def check_limit(
    needed: int, subject: str, fix: str, max_bytes: Any = None, default: int = MAX_ARRAY
) -> None:
    """Raise if `needed` bytes are more than the limit.

    Parameters
    ----------
    needed : int
    subject : str
        What needs the memory; the message continues with "needs ... GiB".
    fix : str
        How to avoid it.
    max_bytes : int, optional
        Limit. Defaults to `default`.
    default : int
    """
    limit = limit_of(max_bytes, default)
    if needed > limit:
        raise SourceError(
            f"{subject} needs {size_text(needed)}, more than the limit of {size_text(limit)}: {fix}, or give "
            "max_bytes= to as_source (--max-bytes) if this size is right."
        )


def check_memory(needed: int, subject: str, fix: str, max_bytes: Any = None) -> None:
    """Raise if `needed` bytes are more than the limit, or more than are free. Parameters as in `check_limit`."""
    check_limit(needed, subject, fix, max_bytes)
    check_free_memory(needed, subject, fix)


def check_free_memory(needed: int, subject: str, fix: str) -> None:
    """Raise if `needed` bytes are more than are free. Parameters as in `check_limit`."""
    free = memory.free_memory()
    if free is not None and needed > free:
        raise SourceError(
            f"{subject} needs {size_text(needed)}, but {size_text(free)} are free: {fix}."
        )


def limit_of(max_bytes: Any, default: int) -> int:
    """Return the limit in bytes; raise if it is not a whole number above 0."""
    if max_bytes is None:
        return default
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise SourceError(f"max_bytes={max_bytes!r}: give a whole number of bytes, at least 1.")
    return max_bytes


def size_text(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size / 2**30:.3g} GiB" if size >= 2**27 else f"{size / 2**20:.3g} MiB"


class Budget:
    """Memory that several threads share: a thread waits until its part is free.

    Parameters
    ----------
    size : int
        Bytes. A part that is larger waits until it is alone.
    """

    def __init__(self, size: int) -> None:
        self._size, self._used = size, 0
        self._changed = threading.Condition()

    def __reduce__(self) -> tuple[type[Budget], tuple[int]]:
        return Budget, (self._size,)  # locks cannot be pickled

    @contextlib.contextmanager
    def hold(self, needed: int) -> Iterator[None]:
        """Use some bytes."""
        part = min(needed, self._size)
        with self._changed:
            self._changed.wait_for(lambda: self._used + part <= self._size)
            self._used += part
        try:
            yield
        finally:
            with self._changed:
                self._used -= part
                self._changed.notify_all()
