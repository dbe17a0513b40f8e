"""The share of an update that is spent in matrix products, from the profiler.

    python -m benchmarks.share                    60000 x 784, K = 32; 100000 x 4096, K = 64

Prints for each shape: the time of one warm update of the remembered game, the share of it during which a matrix
product was running, the share in the small eigenproblems, and the time of the three necessary products at the rate
of plain matrix products, as a share of the update.
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.gemm import gemm_rate
from eigengame.algorithms import Remembered
from eigengame.game.rows import DenseRows
from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver.streams import batch_step

SHAPES = ((60000, 784, 1024, 16), (100000, 4096, 1024, 32))
"""Rows, columns, rows of a batch and components."""

UPDATES = 30


class Share(NamedTuple):
    """Seconds of one update, and the shares of them in products and eigenproblems."""

    seconds: float
    products: float
    eigenproblems: float


def measure(d: int, m: int, k: int) -> tuple[Share, int]:
    """Return the shares of one update, and its number of players."""
    game = Remembered(center=True)
    rng = np.random.default_rng(0)
    values = rng.standard_normal((m, d), dtype=np.float32) / np.sqrt(1 + np.arange(d, dtype="f4"))
    rows = DenseRows(jax.device_put(values), jax.device_put(np.ones(m, np.float32)))
    # Small eigenproblems on one thread, as in a fit.
    with threadpool_limits(1, user_api="blas"), tempfile.TemporaryDirectory() as folder:
        now = batch_step.begin(game, k, d, np.float32, 0)
        for _ in range(5):
            now = batch_step.take(game, now, rows, m)
        jax.block_until_ready(now.state)
        step = batch_step.step.lower(game, ONE_DEVICE, rows, now.state, now.moments, now.probes)
        program = step.compile().as_text()
        with jax.profiler.trace(folder, create_perfetto_trace=False):
            began = time.perf_counter()
            for _ in range(UPDATES):
                now = batch_step.take(game, now, rows, m)
                jax.block_until_ready(now.state)
            seconds = time.perf_counter() - began
        events = read_events(Path(folder))
    products, eigen = operations(program)
    return Share(
        seconds / UPDATES,
        covered(span for name, span in events if name in products) / seconds,
        covered(span for name, span in events if name in eigen) / seconds,
    ), now.state.memory.players.shape[0]


def read_events(folder: Path) -> list[tuple[str, tuple[float, float]]]:
    """Return the names and time spans, in seconds, of all events of the profiler."""
    (path,) = folder.rglob("*.trace.json.gz")
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [
        (event["name"], (event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6))
        for event in events
        if event.get("ph") == "X"
    ]


def operations(program: str) -> tuple[set[str], set[str]]:
    """Return the names of the products (including fusions that contain one) and eigenproblems of a program."""
    bodies = re.split(r"\n(?=%|ENTRY)", program)
    with_product = {
        found.group(1)
        for body in bodies
        if (found := re.match(r"%(\S+) ", body)) and re.search(r" dot\(", body)
    }
    products, eigen = set(), set()
    for name, rest in re.findall(r"^\s*(?:ROOT )?%(\S+) = (.*)$", program, re.MULTILINE):
        called = re.search(r" fusion\(.*calls=%(\S+?)[,\s]", rest + " ")
        if " dot(" in rest or (called and called.group(1) in with_product):
            products.add(name)
        elif "custom-call" in rest and "syevd" in rest:
            eigen.add(name)
    return products, eigen


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of spans: operations may run concurrently."""
    total, reach = 0.0, -np.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reach))
        reach = max(reach, end)
    return total


def main() -> None:
    print(f"jax {jax.__version__}, {jax.devices()[0].platform}")
    for n, d, m, k in SHAPES:
        share, players = measure(d, m, k)
        rate = gemm_rate(n, d, m, players)
        needed = 3 * 2 * m * d * players / rate
        print(
            f"batch {m} x {d}, K = {players}: {1e3 * share.seconds:.2f} ms an update, "
            f"{share.products:.0%} inside matrix products, {share.eigenproblems:.0%} inside "
            f"eigenproblems; the three products alone at the machine's rate of {rate / 1e9:.0f} "
            f"GFLOP/s: {needed / share.seconds:.0%}"
        )


if __name__ == "__main__":
    main()
