"""Reading ahead: on a thread, or by one item without a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from eigengame._system import interrupts

POLL = 0.1
"""Seconds between two checks for a signal, or for the end of the iterator."""

PATIENCE = 0.3
"""Seconds to wait for the thread after Ctrl-C. It may be in a read that never ends."""


def read_ahead(items: Iterator[Any], most: int) -> Iterator[Any]:
    """Iterate over items that a thread draws, at most `most` of them ahead.

    An error in the thread is raised here, after the items before it. The thread stops when the iterator is closed.
    Signals are handled while the iterator waits for the thread.
    """
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=most)
    stop = threading.Event()

    def put(kind: str, item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put((kind, item), timeout=POLL)
                return True
            except queue.Full:
                continue
        return False

    def draw() -> None:
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=draw, name="eigengame-reader", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = _next(waiting)
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
    finally:
        stop.set()
        _wait_for(thread)


def one_ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Iterate over items, each of which is yielded after the next one was drawn.

    For items whose computation is only started when they are drawn. An error is raised after the items before it.
    """
    end = object()
    item, error = next(items, end), None
    while item is not end:
        try:
            later = next(items, end)
        except Exception as found:  # items may do anything
            later, error = end, found
        yield item
        if error is not None:
            raise error
        item = later


def _next(waiting: queue.Queue[tuple[str, Any]]) -> tuple[str, Any]:
    """Return the next item of a queue, and handle signals while it is empty."""
    while True:
        try:
            return waiting.get(timeout=POLL)
        except queue.Empty:
            interrupts.check()


def _wait_for(thread: threading.Thread) -> None:
    """Wait until a thread ends, so that nobody else reads the data; after a signal for a limited time."""
    while thread.is_alive() and not interrupts.requested():
        thread.join(POLL)
    thread.join(PATIENCE)
