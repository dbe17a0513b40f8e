"""Compilation in little time, for programs that mostly call products of a library."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import jax

ON_GPU = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
"""Compiler options: products by the vendor's library, by the algorithm that it proposes."""

ON_CPU: dict[str, Any] = {"xla_backend_optimization_level": 1}
"""Compiler options: few optimisations of what is left beside the products."""

if jax.__version_info__ < (0, 11):
    # The older way to generate code takes less time. JAX 0.11 does not have it.
    ON_CPU["xla_cpu_use_fusion_emitters"] = False


def quick_jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function quickly. Do not call it from other compiled functions.

    On GPUs XLA's autotuning tries dozens of algorithms for each product: 40 s for the update of a tall array, which
    then takes less than a second for all rows. It pays for updates that run thousands of times. Sums over many rows
    or features have to be written as sums of chunks instead (`row_product`, `long_product`).

    On CPUs optimisation takes half of the time of the first fit, and saves at most a few percent of the others. It
    is left as it is where XLA_FLAGS set it.
    """

    @functools.cache
    def program(backend: str) -> Any:
        return jax.jit(function, compiler_options=_compiler_options(backend), **options)

    @functools.wraps(function)
    def call(*args: Any, **others: Any) -> Any:
        return program(jax.default_backend())(*args, **others)

    def lower(*args: Any, **others: Any) -> Any:
        return program(jax.default_backend()).lower(*args, **others)

    call.lower = lower  # type: ignore[attr-defined]
    return call


def _compiler_options(backend: str) -> dict[str, Any] | None:
    """Return the options for a backend; None for those of XLA."""
    if backend == "cpu":
        given = "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", "")
        return None if given else ON_CPU
    return ON_GPU if backend == "gpu" else None
