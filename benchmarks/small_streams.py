"""First and later calls on little data: `partial_fit` and fits of the game, by NumPy and by compiled programs.

    OPENBLAS_NUM_THREADS=2 python -m benchmarks.small_streams

Each way runs in a process of its own, without a compilation cache. The first call of each shape may compile.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

CALLS = 60
"""Calls of `partial_fit` for each shape."""

SHAPES = (
    (1, 52, 8),
    (25, 52, 8),
    (64, 200, 8),
    (256, 64, 8),
    (1024, 256, 8),
    (32, 784, 16),
    (256, 784, 16),
    (1024, 784, 16),
    (64, 2000, 10),
)
"""Rows of a call, features, and components."""


def measured(*, compiled: bool) -> None:
    """Print a row for each shape."""
    import jax

    from eigengame import EigenGamePCA
    from eigengame.solver.planning import make_plan

    jax.devices()
    if compiled:
        make_plan.LITTLE_WORK = 0
    options: dict[str, Any] = {"algorithm": "remembered", "passes": 1, "tol": None}
    for rows, features, k in SHAPES:
        rng = np.random.default_rng(0)
        parts = rng.standard_normal((CALLS, rows, features), np.float32)
        parts /= np.sqrt(np.arange(1, features + 1, dtype=np.float32))
        pca, whole = EigenGamePCA(k, random_state=0), parts.reshape(-1, features)
        calls = [_seconds(pca.partial_fit, part) for part in parts]
        fits = [_seconds(EigenGamePCA(k, random_state=0, **options).fit, whole) for _ in range(4)]
        times = (1e3 * one for one in (calls[0], np.median(calls[2:]), fits[0], min(fits[1:])))
        first, others, fit, later = times
        print(
            f"| {'compiled' if compiled else 'NumPy'} | {rows} x {features}, k = {k} "
            f"| {first:.0f} | {others:.2f} | {fit:.0f} | {later:.0f} |",
            flush=True,
        )


def _seconds(call: Any, data: np.ndarray) -> float:
    began = time.perf_counter()
    call(data)
    return time.perf_counter() - began


def main() -> None:
    """Print the table, by a process for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=("numpy", "compiled"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        measured(compiled=given.way == "compiled")
        return
    print(
        "| updates | rows of a call | first call, ms | others, ms "
        f"| first fit of {CALLS} times as many rows, ms | later, ms |"
    )
    print("|---|---|---|---|---|---|", flush=True)
    environment = os.environ | {"EIGENGAME_CACHE": "off"}
    for way in ("numpy", "compiled"):
        command = [sys.executable, "-m", "benchmarks.small_streams", "--way", way]
        subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main()
