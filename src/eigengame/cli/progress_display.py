"""Progress of a command: a bar or lines on stderr, and optional log files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class WithoutOutcomeMessage:
    """Watcher without an `end` message: the command prints the outcome with its results."""

    def __init__(self, watcher: Any) -> None:
        self.batch, self.plan = watcher.batch, watcher.plan
        self.close = getattr(watcher, "close", lambda: None)


def make_watchers(
    quiet: bool, log: Path | None = None, tensorboard: Path | None = None
) -> list[Any]:
    """Return the watchers for the progress options of a command."""
    from eigengame.progress import JsonLines, TensorBoard, progress_watcher

    watchers: list[Any] = []
    if log is not None:
        watchers.append(JsonLines(log))
    if tensorboard is not None:
        watchers.append(TensorBoard(tensorboard))
    # The bar takes over the terminal when it is created. It comes last, so that errors of the others stay readable.
    return watchers if quiet else [*watchers, WithoutOutcomeMessage(progress_watcher())]


@contextlib.contextmanager
def with_row_count(
    blocks: Iterator[Any], total: int | None, quiet: bool
) -> Iterator[Iterator[Any]]:
    """Yield an iterator over the same blocks that shows how many rows it has produced."""
    if quiet:
        yield blocks
        return
    (watcher,) = make_watchers(quiet)
    try:
        yield _count_rows(blocks, total, watcher)
    finally:
        watcher.close()


def _count_rows(blocks: Iterator[Any], total: int | None, watcher: Any) -> Iterator[Any]:
    """Yield the blocks and report the number of rows to a watcher after each of them."""
    from eigengame.solver.passes.events import Progress

    rows = 0
    for block in blocks:
        yield block
        rows += len(block)
        watcher.batch(Progress("transform", 1, rows, total))
    watcher.batch(Progress("transform", 1, rows, rows, ended=True))
