"""Compilation without a search for the fastest algorithm of each product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

PLAIN = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
"""Compiler options: products by the vendor's library, by the algorithm that it proposes."""


def jit_without_autotune(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function without XLA's autotuning on GPUs. Do not call it from other compiled functions.

    Autotuning tries dozens of algorithms for each product: 40 s for the update of a tall array, which then takes
    less than a second for all rows. It pays for updates that run thousands of times. Sums over many rows or
    features have to be written as sums of chunks instead (`row_product`, `long_product`).
    """
    return jax.jit(function, compiler_options=PLAIN, **options)
