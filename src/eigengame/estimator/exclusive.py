"""Calls that change an estimator: one at a time, and each changes everything or nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from eigengame._system import interrupts
from eigengame._system.blas_threads import one_blas_thread
from eigengame._system.compilation_cache import cached_compilations
from eigengame._system.forks import refuse_after_fork

FEATURES = ("n_features_in_", "feature_names_in_", "_alleles", "_positions", "_layer")
"""Attributes that the check of the input sets before anything is fitted."""

_lock = threading.Lock()
_calls: dict[int, str] = {}
"""Methods that are running, by the `id` of the estimator. A lock within the estimator could not be pickled."""


class Change:
    """Change of an estimator: all of its attributes at once.

    Parameters
    ----------
    estimator : estimator
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator, self.done = estimator, False
        self._features = {
            name: value for name, value in vars(estimator).items() if name in FEATURES
        }

    def commit(self, attributes: dict[str, Any]) -> None:
        """Set attributes in one step, which neither a signal nor another thread can divide."""
        vars(self.estimator).update(attributes)
        self.done = True

    def revert(self) -> None:
        """Restore the attributes of the features, unless the change was made."""
        if not self.done:
            now = vars(self.estimator).items()
            others = {name: value for name, value in now if name not in FEATURES}
            self.estimator.__dict__ = others | self._features


@contextlib.contextmanager
def exclusive(estimator: Any, method: str) -> Iterator[Change]:
    """Let one call have an estimator for itself, and restore its features if the call fails.

    Signals are handled between two batches, and a second signal at once.

    Parameters
    ----------
    estimator : estimator
    method : str
        Name of the method, for the message to a second call.
    """
    refuse_after_fork()
    with interrupts.deferred():
        _enter(estimator, method)
        change = Change(estimator)
        try:
            with interrupts.second_at_once():
                yield change
        except BaseException:
            change.revert()
            raise
        finally:
            _leave(estimator)


def _enter(estimator: Any, method: str) -> None:
    """Record a call; raise RuntimeError if another one is running."""
    with _lock:
        running = _calls.get(id(estimator))
        if running is not None:
            raise RuntimeError(
                f"{method} was called while {running} of the same estimator is running: use one estimator for each "
                "thread and merge them afterwards, or call its methods one after another."
            )
        _calls[id(estimator)] = method


def _leave(estimator: Any) -> None:
    """Remove the record of a call."""
    with _lock:
        _calls.pop(id(estimator), None)


@contextlib.contextmanager
def precision(dtype: Any) -> Iterator[None]:
    """Compute in this precision, with small LAPACK problems on one thread, where they are fastest.

    Compiled programs are cached on disk.
    """
    with (
        interrupts.deferred(),
        jax.enable_x64(dtype == np.float64),
        one_blas_thread(),
        cached_compilations(),
        interrupts.second_at_once(),
    ):
        yield
