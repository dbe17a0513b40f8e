"""Who watches from the command line: a bar, and logs where asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Unspoken:
    """A watcher that does not say how the run ended: the command says it, with its results."""

    def __init__(self, watcher: Any) -> None:
        self.batch, self.plan = watcher.batch, watcher.plan
        self.close = getattr(watcher, "close", lambda: None)


def watchers(quiet: bool, log: Path | None = None, tensorboard: Path | None = None) -> list[Any]:
    """Return the watchers that were asked for."""
    from eigengame.progress import JsonLines, TensorBoard, progress_watcher

    found: list[Any] = []
    if log is not None:
        found.append(JsonLines(log))
    if tensorboard is not None:
        found.append(TensorBoard(tensorboard))
    # The bar takes the terminal when it is made, so it comes last: what fails before it can be read.
    return found if quiet else [*found, Unspoken(progress_watcher())]


@contextlib.contextmanager
def counted(blocks: Iterator[Any], total: int | None, quiet: bool) -> Iterator[Iterator[Any]]:
    """Give blocks of rows that show, as they are drawn, how many there have been."""
    if quiet:
        yield blocks
        return
    from eigengame.progress import progress_watcher

    watcher = Unspoken(progress_watcher())
    try:
        yield _told(blocks, total, watcher)
    finally:
        watcher.close()


def _told(blocks: Iterator[Any], total: int | None, watcher: Any) -> Iterator[Any]:
    from eigengame.solver.events import Progress

    rows = 0
    for block in blocks:
        yield block
        rows += len(block)
        watcher.batch(Progress("transform", 1, rows, total))
    watcher.batch(Progress("transform", 1, rows, rows, ended=True))
