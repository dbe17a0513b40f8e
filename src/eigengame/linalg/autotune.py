"""Compilation of what runs a few times in a fit, if at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def jit_without_autotune(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a function compiled without a search for its fastest form; it is not to be called by others compiled.

    On a GPU that search multiplies arrays in dozens of ways: worth it for an update, which is made thousands of
    times, but a minute of it for what comes between two passes is longer than these passes.
    """
    return jax.jit(function, compiler_options={"xla_gpu_autotune_level": 0}, **options)
