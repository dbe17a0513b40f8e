"""Progress of a fit: what callbacks receive, and their interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Progress:
    """Progress of a pass.

    Attributes
    ----------
    task : str
        Purpose of the pass: "remembered", "refinement", "probes", ...
    number : int
        Number of the pass, from 1.
    rows : int
        Rows read in this pass so far.
    total : int or None
        Rows of the pass, if known.
    start : int
        First row of this pass in this run: above 0 if it was resumed.
    ended : bool
        Whether the pass has ended.
    tell : callable
        Returns figures of the run so far by name: `variance` (share explained), `streak` (estimated). They are
        transferred from the device, so do not call it often.
    """

    task: str
    number: int
    rows: int
    total: int | None
    start: int = 0
    ended: bool = False
    tell: Callable[[], dict[str, float]] = field(default=dict, repr=False)


class Watcher(Protocol):
    """Progress callback, called after each batch, and once more when a pass ends (`Progress.ended`).

    Optional methods: `begin(facts)`; `plan(plan)` with the `Plan` of the fit; `end(outcome)`; and `close()`, which
    is called in any case.
    """

    def batch(self, at: Progress) -> bool | None:
        """Receive the progress of a pass; return True to stop the run with what was found so far."""
        ...


def call(watchers: Any, name: str, *arguments: Any) -> None:
    """Call an optional method of the watchers that have it."""
    for watcher in watchers:
        method = getattr(watcher, name, None)
        if method is not None:
            method(*arguments)
