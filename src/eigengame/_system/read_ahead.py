"""Reading ahead on a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any


def read_ahead(items: Iterator[Any], most: int) -> Iterator[Any]:
    """Iterate over items that a thread draws, at most `most` of them ahead.

    An error in the thread is raised here, after the items before it. The thread stops when the iterator is closed.
    """
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=most)
    stop = threading.Event()

    def put(kind: str, item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put((kind, item), timeout=0.1)
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
            kind, item = waiting.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
