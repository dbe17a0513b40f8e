"""Weak and strong scaling of the remembered game on simulated devices and on real processes.

    python -m benchmarks.scaling [--devices 1 2 4 8] [--processes 1 2] [--small]

Simulated devices share the cores of one machine. Their efficiency shows the cost of sharing, not the speed of
several cards. Bytes are those that the compiled program exchanges in an update, beside the prediction of the cost
model. Times are medians over updates after the first two, in one process for each count.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.machine import circumstances, threads_allowed

K, BATCH = 16, 256
STRONG, STRONG_SMALL = 2**18, 2**14
"""Features in total (strong scaling); an eighth of them for each device (weak scaling)."""


def main() -> None:
    """Print a table for simulated devices and one for processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_work(**json.loads(options.worker))))
        return
    width = STRONG_SMALL if options.small else STRONG
    print(json.dumps(circumstances(threads_allowed())))
    for axis in ("features", "data"):
        for kind in ("strong", "weak"):
            _devices_table(axis, kind, options.devices, width)
    for axis in ("features", "data"):
        _processes_table(axis, options.processes, width)


def _devices_table(axis: str, kind: str, counts: list[int], width: int) -> None:
    """Print the time and the bytes of an update by the number of simulated devices that share an axis."""
    print(f"\n{kind} scaling, devices share {axis} (simulated)")
    print(
        f"{'devices':>8} {'rows':>7} {'features':>9} {'ms':>8} {'against one':>11} {'bytes':>9} {'model':>9}"
    )
    first = None
    for count in counts:
        grown = count if kind == "weak" else 1
        m = BATCH * (grown if axis == "data" else 1)
        d = width // (8 if kind == "weak" else 1) * (grown if axis == "features" else 1)
        found = _run({"axis": axis, "count": count, "m": m, "d": d}, devices=count)
        first = first or found["ms"]
        # All simulated devices share the same cores, so time is expected to grow with the work.
        ideal = first * grown
        print(
            f"{count:>8} {m:>7} {d:>9} {found['ms']:>8.2f} {ideal / found['ms']:>11.2f} "
            f"{found['bytes']:>9} {found['model']:>9}"
        )


def _processes_table(axis: str, counts: list[int], width: int) -> None:
    """Print the time of an update by the number of processes that share an axis, with gloo."""
    print(f"\nstrong scaling, processes share {axis} (gloo on this machine)")
    print(f"{'processes':>10} {'rows':>7} {'features':>9} {'ms':>8} {'against one':>11}")
    first = None
    for count in counts:
        port = _free_port()
        job = {"axis": axis, "count": count, "m": BATCH, "d": width // 8}
        workers = [
            _start(job | {"port": port, "index": index, "processes": count}, devices=1)
            for index in range(count)
        ]
        found = [json.loads(one.communicate()[0].splitlines()[-1]) for one in workers]
        slowest = max(one["ms"] for one in found)
        first = first or slowest
        print(f"{count:>10} {BATCH:>7} {width // 8:>9} {slowest:>8.2f} {first / slowest:>11.2f}")


def _run(job: dict[str, Any], devices: int) -> dict[str, Any]:
    """Return the results of a process with simulated devices."""
    worker = _start(job, devices)
    out = worker.communicate()[0]
    if worker.returncode:
        raise SystemExit(f"the worker for {job} failed")
    return json.loads(out.splitlines()[-1])


def _start(job: dict[str, Any], devices: int) -> subprocess.Popen[str]:
    """Start a worker."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.scaling", "--worker", json.dumps(job)],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        text=True,
    )


def _work(
    axis: str, count: int, m: int, d: int, port: int = 0, index: int = 0, processes: int = 1
) -> dict[str, Any]:
    """Time updates of the remembered game on a mesh."""
    import jax
    import numpy as np

    if processes > 1:
        from eigengame.sharding.hosts import Hosts, join

        join(Hosts(f"127.0.0.1:{port}", processes, index))
    from tests.sharding.collectives import bytes_moved

    from eigengame._play import _update
    from eigengame.algorithms import Remembered
    from eigengame.sharding.cost import bytes_exchanged
    from eigengame.sharding.placement import choose_placement
    from eigengame.solver.streams.batch_step import begin

    place = choose_placement({axis: count})
    game = Remembered(space="score", center=True)
    state = begin(game, K, d, np.float32, 0, place).state
    own, (first, last) = place.local_rows(m)[1], place.local_columns(d)
    x = np.random.default_rng(index).standard_normal((own, last - first), np.float32)
    rows = place.dense(place.batch(x, d), place.per_row(np.ones(own, np.float32)))
    program = _update.lower(game, place, rows, state).compile()
    times = []
    for _ in range(12):
        begun = time.perf_counter()
        state, _info = _update(game, place, rows, state)
        jax.block_until_ready(state)
        times.append(1000 * (time.perf_counter() - begun))
    players = game.players_for(K, d)
    return {
        "ms": statistics.median(times[2:]),
        "bytes": bytes_moved(program),
        "model": bytes_exchanged(place.layout, m, players, d),
    }


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    main()
