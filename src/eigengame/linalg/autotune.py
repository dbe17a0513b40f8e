"""Compilation of functions that run only a few times in a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def jit_without_autotune(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function without XLA's autotuning on GPUs. Do not call it from other compiled functions.

    Autotuning tries dozens of algorithms for each product. That pays for an update, which runs thousands of times,
    but takes up to a minute for a function that runs between two passes, longer than the passes themselves.
    """
    return jax.jit(function, compiler_options={"xla_gpu_autotune_level": 0}, **options)
