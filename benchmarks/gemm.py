"""The machine's own rate: float32 matrix products X V' and Y'X at a data set's shapes, by NumPy.

    python -m benchmarks.gemm --rows 100000 --columns 4096 --batch 1024 --players 64

Prints one JSON line. It is the yardstick for our own solvers: a pass cannot do without these two
products, so the share of this rate that a fit reaches says how much of its time is anything else.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from benchmarks.makers import slices

LARGEST = 2**29
"""Bytes of rows to multiply: far more than any cache, so that rows come from memory as in a fit."""


def gemm_rate(rows: int, columns: int, batch: int, players: int, sweeps: int = 5) -> float:
    """Return the best rate over some sweeps, in floating-point operations a second."""
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
    asked = parser.parse_args()
    rate = gemm_rate(asked.rows, asked.columns, asked.batch, asked.players)
    print(json.dumps({"gflops": round(rate / 1e9, 2), "players": asked.players}))


if __name__ == "__main__":
    main()
