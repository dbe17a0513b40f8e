"""One peer on one data set, in a process of its own; prints one JSON line.

    python -m benchmarks.worker --peer block-krylov --data harmonic --scale small

Started by the driver (`python -m benchmarks.peers`), which sets the number of threads.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import resource
import time
import traceback
import warnings
from typing import Any

from benchmarks.memory import MB, AnonymousPeak, status_bytes


def measure(asked: argparse.Namespace, watch: AnonymousPeak) -> dict[str, Any]:
    """Return one row of results: times, memory, passes and angles."""
    from benchmarks.datasets import DATA_SETS, open_data, prepare
    from benchmarks.machine import versions

    rival = find(asked.peer)
    summon(rival.needs)
    folder = prepare(asked.data, asked.scale)
    imported = status_bytes("VmRSS")
    data = open_data(asked.data, folder)
    size = DATA_SETS[asked.data].size(asked.scale)

    def fit(seed: int) -> tuple[Any, float]:
        began = time.perf_counter()
        found = rival.run(data, size.k, size.batch, seed)
        return found, time.perf_counter() - began

    watch.reset()
    loaded, loaded_anonymous = status_bytes("VmRSS"), status_bytes("RssAnon")
    first, cold = fit(seed=0)
    anonymous, peak = watch.bytes(), status_bytes("VmHWM")
    warm, accuracy = [], [compared(first.components, folder)]
    while len(warm) < asked.repeats and another_fits(max([cold, *warm]), asked.timeout):
        found, seconds = fit(seed=len(accuracy))
        warm.append(seconds)
        accuracy.append(compared(found.components, folder))
    return {
        "status": "ok",
        "cold_s": cold,
        "warm_s": warm,
        "best_s": min(warm) if warm else None,
        "passes": first.passes,
        "players": first.players,
        "note": first.note,
        **max(accuracy, key=lambda one: one["max_angle"]),
        "max_angle_each_run": [one["max_angle"] for one in accuracy],
        "memory_mb": {
            "after_import": imported / MB,
            "after_load": loaded / MB,
            "peak": peak / MB,
            "peak_over_import": (peak - imported) / MB,
            "peak_over_load": (peak - loaded) / MB,
            "own": (anonymous - loaded_anonymous) / MB,
        },
        "versions": versions(rival.package, "numpy", "scipy", "jax"),
    }


def find(name: str) -> Any:
    """Return the peer of that name."""
    from benchmarks.ours import OURS
    from benchmarks.rivals import RIVALS

    return (OURS | RIVALS)[name]


def summon(needs: str) -> None:
    """Import what a peer needs, "module" or "module:name"; its error says what is missing."""
    module, _, name = needs.partition(":")
    if name and not hasattr(importlib.import_module(module), name):
        raise ModuleNotFoundError(f"{module} has no {name}")
    importlib.import_module(module)


def another_fits(slowest: float, timeout: float) -> bool:
    """Say whether one more run would end in time: what is measured must not be lost to the timeout."""
    return time.perf_counter() - STARTED + 1.5 * slowest < timeout


def compared(components: Any, folder: Any) -> dict[str, Any]:
    """Return how near the components are to the truth (read after the first run's memory is noted)."""
    from benchmarks.datasets import open_truth
    from benchmarks.score import angles, streak

    errors = angles(components, open_truth(folder).components)
    return {
        "max_angle": float(errors.max()),
        "streak_8": streak(errors, math.pi / 8),
        "streak_32": streak(errors, math.pi / 32),
        "asked": len(errors),
    }


def reason(error: BaseException) -> str:
    """Return one line that says why there is no result."""
    from benchmarks.makers import NoData
    from benchmarks.rivals import Declined

    kinds = {ModuleNotFoundError: "not installed", NoData: "no data", Declined: "declined"}
    for kind, said in kinds.items():
        if isinstance(error, kind):
            return f"{said}: {error}"
    if isinstance(error, MemoryError):
        return "out of memory"
    said = " ".join(str(error).split())
    return f"failed: {type(error).__name__}: {said[:200]}"


def main() -> None:
    """Measure, and print the row whatever happens."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--scale", choices=("small", "full"), default="full")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument(
        "--memory", type=float, default=0.0, help="GB it may allocate; 0 is no limit"
    )
    asked = parser.parse_args()
    watch = AnonymousPeak()
    if asked.memory:  # so that too large a peer fails by itself, and takes nobody with it
        limit = int(asked.memory * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    warnings.simplefilter("ignore")
    try:
        row = measure(asked, watch)
    except Exception as error:
        traceback.print_exc()
        row = {"status": reason(error)}
    print(json.dumps(row), flush=True)


STARTED = time.perf_counter()

if __name__ == "__main__":
    main()
