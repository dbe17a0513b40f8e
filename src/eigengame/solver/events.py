"""Looking on while a fit reads: what a pass tells, and who may listen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol


def _nothing() -> dict[str, float]:
    return {}


@dataclass(frozen=True)
class Progress:
    """Where a pass is.

    Attributes
    ----------
    task : str
        What the pass is for: "remembered", "refinement", "probes", ...
    number : int
        Which pass over the data it is, from 1.
    rows : int
        Rows read in it so far.
    total : int or None
        Rows it will read, where known.
    start : int
        The row it went on from: above 0 after an interruption.
    ended : bool
        Whether this is its last word.
    tell : callable
        Returns figures of the run so far, by name: `variance` (share explained), `streak` (estimated).
        They are fetched from the device: ask seldom.
    """

    task: str
    number: int
    rows: int
    total: int | None
    start: int = 0
    ended: bool = False
    tell: Callable[[], dict[str, float]] = field(default=_nothing, repr=False)


class Watcher(Protocol):
    """Someone who is told after every batch.

    Optional methods: `begin(facts)`, `plan(planned)` with the memory that will be taken, `end(outcome)`,
    and `close()`, which is called whatever happens.
    """

    def batch(self, at: Progress) -> bool | None:
        """Hear where the pass is; return True to end the run with what has been found so far."""
        ...


def call(watchers: Any, name: str, *arguments: Any) -> None:
    """Call an optional method of those watchers that have it."""
    for watcher in watchers:
        method = getattr(watcher, name, None)
        if method is not None:
            method(*arguments)
