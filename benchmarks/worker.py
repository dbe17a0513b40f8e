"""One peer on one data set, in its own process; prints one JSON line.

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


def measure(options: argparse.Namespace, watch: AnonymousPeak) -> dict[str, Any]:
    """Return one row of results: times, memory, passes and angles."""
    from benchmarks.datasets import DATA_SETS, open_data, prepare
    from benchmarks.machine import versions

    solver = find(options.peer)
    import_requirement(solver.needs)
    folder = prepare(options.data, options.scale)
    imported = status_bytes("VmRSS")
    data = open_data(options.data, folder)
    size = DATA_SETS[options.data].size(options.scale)

    def fit(seed: int) -> tuple[Any, float]:
        began = time.perf_counter()
        found = solver.run(data, size.k, size.batch, seed)
        return found, time.perf_counter() - began

    watch.reset()
    loaded, loaded_anonymous = status_bytes("VmRSS"), status_bytes("RssAnon")
    first, cold = fit(seed=0)
    anonymous, peak = watch.bytes(), status_bytes("VmHWM")
    warm, accuracy = [], [compared(first.components, folder)]
    while len(warm) < options.repeats and another_fits(max([cold, *warm]), options.timeout):
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
        "versions": versions(solver.package, "numpy", "scipy", "jax"),
    }


def find(name: str) -> Any:
    """Return the solver of a peer."""
    from benchmarks.other_solvers import OTHER_SOLVERS
    from benchmarks.own_solvers import OWN_SOLVERS

    return (OWN_SOLVERS | OTHER_SOLVERS)[name]


def import_requirement(needs: str) -> None:
    """Import "module" or "module:name", so that a missing library raises its own error."""
    module, _, name = needs.partition(":")
    if name and not hasattr(importlib.import_module(module), name):
        raise ModuleNotFoundError(f"{module} has no {name}")
    importlib.import_module(module)


def another_fits(slowest: float, timeout: float) -> bool:
    """Return whether one more run would finish before the timeout, which would discard all results."""
    return time.perf_counter() - STARTED + 1.5 * slowest < timeout


def compared(components: Any, folder: Any) -> dict[str, Any]:
    """Compare components with the true ones, which are loaded only after the memory was measured."""
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
    """Return the reason for a missing result, in one line."""
    from benchmarks.dataset_builders import DataUnavailable
    from benchmarks.other_solvers import Declined

    kinds = {ModuleNotFoundError: "not installed", DataUnavailable: "no data", Declined: "declined"}
    for kind, text in kinds.items():
        if isinstance(error, kind):
            return f"{text}: {error}"
    if isinstance(error, MemoryError):
        return "out of memory"
    message = " ".join(str(error).split())
    return f"failed: {type(error).__name__}: {message[:200]}"


def main() -> None:
    """Measure and print the row, also in case of an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--scale", choices=("small", "full"), default="full")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument(
        "--memory", type=float, default=0.0, help="limit of its memory in GB; 0 for none"
    )
    options = parser.parse_args()
    watch = AnonymousPeak()
    if options.memory:  # so that a solver that allocates too much fails without affecting others
        limit = int(options.memory * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    warnings.simplefilter("ignore")
    try:
        row = measure(options, watch)
    except Exception as error:
        traceback.print_exc()
        row = {"status": reason(error)}
    print(json.dumps(row), flush=True)


STARTED = time.perf_counter()

if __name__ == "__main__":
    main()
