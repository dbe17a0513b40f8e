"""Detection of processes that were forked after JAX had started its threads.

A forked process has a copy of the memory, but none of the threads, so JAX waits in it for ever.
"""

from __future__ import annotations

import os
import sys


class _Process:
    """What is known about this process: whether JAX was used before a fork, and whether it was forked since."""

    jax_was_used = False
    forked = False


def refuse_after_fork() -> None:
    """Raise RuntimeError in a process that was forked after JAX was used."""
    if _Process.forked:
        raise RuntimeError(
            "this process was forked from one in which JAX had been used, and JAX would hang in it: start "
            'processes with multiprocessing.get_context("spawn"), or use joblib with its default backend "loky".'
        )


def _jax_is_used() -> bool:
    """Return whether JAX has started its threads; if its version does not say so, whether it is imported."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    initialized = getattr(bridge, "backends_are_initialized", None)
    return bool(initialized()) if callable(initialized) else "jax" in sys.modules


def _before() -> None:
    """Note the state of JAX in the parent: its locks may be held for ever in the child."""
    _Process.jax_was_used = _jax_is_used()


def _in_child() -> None:
    _Process.forked = _Process.forked or _Process.jax_was_used


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_child=_in_child)
