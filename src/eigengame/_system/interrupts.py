"""Ctrl-C and SIGTERM during a fit: noted when they arrive, handled between two batches.

Python calls the handler of a signal between any two instructions of the main thread, and the default handler of
Ctrl-C raises KeyboardInterrupt there. Within a callback of the garbage collector, which JAX has, the exception is
printed and lost. Within the update of an estimator it leaves half of the update. So a fit replaces the handlers
while it runs by one that only notes the signal, and calls the previous handler where nothing is half done.

Handlers belong to the main thread: in other threads all of this has no effect.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, Any], Any]


class _State:
    """Signals of this process; only the main thread changes it.

    Attributes
    ----------
    handlers : dict
        Previous handlers, by signal, while signals are deferred.
    immediate : bool
        Whether a signal is handled when it arrives.
    insistent : bool
        Whether a second signal is handled when it arrives.
    received : bool
        Whether a signal has arrived since they are deferred.
    pending : int or None
        Signal that was not handled, or whose exception may be lost.
    """

    def __init__(self) -> None:
        self.handlers: dict[int, Handler] = {}
        self.immediate, self.insistent = True, False
        self.received = False
        self.pending: int | None = None


_state = _State()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _note(number: int, frame: Any) -> None:
    """Note a signal; call its previous handler if signals are handled at once, or if it is the second one."""
    at_once = _state.immediate or (_state.insistent and _state.received)
    _state.received, _state.pending = True, number
    if at_once:
        _handler(number)(number, frame)
        _state.pending = None  # after an exception it is not certain that anyone receives it


def _handler(number: int) -> Handler:
    """Return the previous handler of a signal."""
    return _state.handlers.get(number, signal.default_int_handler)


def check() -> None:
    """Call the previous handler of a pending signal; the default one of Ctrl-C raises KeyboardInterrupt."""
    if _state.pending is None or not _in_main_thread():
        return
    number, _state.pending = _state.pending, None
    _handler(number)(number, None)


def requested() -> bool:
    """Return whether this is the main thread, and a signal has arrived since signals are deferred."""
    return _state.received and _in_main_thread()


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Handle signals at `check` and at the end, not in between.

    Only handlers written in Python are replaced: where SIGTERM ends the process, it still does. May be nested.
    """
    if not _in_main_thread():
        yield
        return
    before, outermost, failed = (_state.immediate, _state.insistent), not _installed(), False
    try:
        if outermost:
            _install()
        _state.immediate = _state.insistent = False
        check()
        yield
    except Exception:
        raise
    except BaseException:  # what a handler has raised
        failed = True
        raise
    finally:
        if outermost:
            _restore(handled=failed)
        else:
            _state.immediate, _state.insistent = before
            if _state.immediate:
                check()


def _installed() -> bool:
    """Return whether signals are deferred. The state may be left over, if a signal arrived while it was reset."""
    return bool(_state.handlers) and any(signal.getsignal(one) is _note for one in SIGNALS)


def _install() -> None:
    """Replace the handlers that are functions."""
    _state.handlers, _state.received = {}, False
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            _state.handlers[number] = handler
            try:
                signal.signal(number, _note)
            except ValueError:  # an interpreter within another one has no signals
                del _state.handlers[number]


def _restore(handled: bool) -> None:
    """Restore the handlers, and call that of a pending signal unless it was handled."""
    handlers = _state.handlers
    # The first handler may raise as soon as it is restored.
    try:
        _restore_one(signal.SIGINT, handlers)
    finally:
        _restore_one(signal.SIGTERM, handlers)
        _state.handlers, _state.received = {}, False
        _state.immediate, _state.insistent = True, False
        pending, _state.pending = _state.pending, None
    if pending is not None and not handled:
        handlers.get(pending, signal.default_int_handler)(pending, None)


def _restore_one(number: int, handlers: dict[int, Handler]) -> None:
    """Restore a handler, unless someone else has replaced it meanwhile."""
    if number in handlers and signal.getsignal(number) is _note:
        signal.signal(number, handlers[number])


@contextlib.contextmanager
def second_at_once() -> Iterator[None]:
    """Handle a second signal at once within `deferred`: for computations, which may take long."""
    if not _in_main_thread() or not _state.handlers:
        yield
        return
    before = _state.insistent
    try:
        try:
            _state.insistent = True
            yield
        finally:
            _state.insistent = before
    finally:  # again, if the second signal arrived in the line above
        _state.insistent = before


@contextlib.contextmanager
def immediate() -> Iterator[None]:
    """Handle signals at once within `deferred`: for code that may wait for a long time, such as opening data."""
    if not _in_main_thread() or not _state.handlers:
        yield
        return
    before = _state.immediate
    try:
        check()
        _state.immediate = True
        yield
    finally:
        _state.immediate = before


def drawn(items: Iterable[Any]) -> Iterator[Any]:
    """Iterate over items; signals are handled at once while the next one is drawn, which may wait for a disk."""
    iterator = iter(items)
    while True:
        with immediate():
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


@contextlib.contextmanager
def as_keyboard_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and SIGTERM, and again at `check` if the exception was lost."""
    if not _in_main_thread():
        yield
        return
    # A signal that the caller ignores stays ignored: shells start background jobs without Ctrl-C.
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: one for number, one in before.items() if one not in (None, signal.SIG_IGN)}
    try:
        for number in before:
            signal.signal(number, _raise)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _state.pending = None


def _raise(number: int, frame: Any) -> None:
    """Raise KeyboardInterrupt, and note the signal in case the exception is lost."""
    _state.pending = number
    raise KeyboardInterrupt
