"""Refusal of data that must be in memory as a whole but does not fit."""

from __future__ import annotations

from eigengame._system import memory
from eigengame.sources._base import SourceError


def check_free_memory(needed: int, subject: str, fix: str) -> None:
    """Raise if fewer than `needed` bytes are free.

    Parameters
    ----------
    needed : int
    subject : str
        What needs the memory; the message continues with "needs ... GiB".
    fix : str
        How to avoid it.
    """
    free = memory.free_memory()
    if free is not None and needed > free:
        raise SourceError(
            f"{subject} needs {needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free: {fix}."
        )
