"""The rate of the machine: float32 matrix products X V' and Y'X in NumPy, at the shapes of a data set.

    python -m benchmarks.gemm --rows 100000 --columns 4096 --batch 1024 --players 64

Prints one JSON line. Every pass needs these two products, so the ratio of the rate of a fit to this rate shows how
much of its time is spent on other work.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from benchmarks.dataset_builders import slices

LARGEST = 2**29
"""Bytes of rows to multiply: more than any cache, so that rows are read from memory, as in a fit."""


def gemm_rate(rows: int, columns: int, batch: int, players: int, sweeps: int = 5) -> float:
    """Return the best rate over several sweeps, in floating-point operations per second."""
    rows = max(batch, min(rows, LARGEST // (4 * columns)) // batch * batch)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((rows, columns), dtype=np.float32)
    block = rng.standard_normal((players, columns), dtype=np.float32)
    direction = np.empty_like(block)
    times = []
    for _ in range(sweeps + 1):
        began = time.perf_counter()
        for window in slices(rows, batch):
            scores = data[window] @ block.T
            np.matmul(scores.T, data[window], out=direction)
        times.append(time.perf_counter() - began)
    return flops(rows, columns, players) / min(times[1:])


def flops(rows: int, columns: int, players: int) -> int:
    """Return the operations of both products in one pass."""
    return 2 * 2 * rows * columns * players


def main() -> None:
    """Measure and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--rows", "--columns", "--batch", "--players"):
        parser.add_argument(name, type=int, required=True)
    options = parser.parse_args()
    rate = gemm_rate(options.rows, options.columns, options.batch, options.players)
    print(json.dumps({"gflops": round(rate / 1e9, 2), "players": options.players}))


if __name__ == "__main__":
    main()
