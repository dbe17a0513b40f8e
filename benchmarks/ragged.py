"""Rows per second and compilations of `partial_fit` with batches of different sizes.

    python -m benchmarks.ragged [--features 52] [--components 8] [--largest 50] [--seconds 10]

Sizes are drawn from 1 to the largest. Each size occurs once before the measurement, so that no compilation is
measured. On a machine with other load, compare times of the processor.
"""

from __future__ import annotations

import argparse
import resource
import time

import jax
import numpy as np

from benchmarks.machine import circumstances
from eigengame import EigenGamePCA


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=52)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--largest", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **_: compiled.append(name) if "backend_compile" in name else None
    )
    print(
        ", ".join(
            f"{name} {value}" for name, value in circumstances(jax.local_device_count()).items()
        )
    )
    rng = np.random.default_rng(0)
    shape = given.largest, given.features
    pca = EigenGamePCA(given.components, random_state=0, algorithm="remembered")
    for size in rng.permutation(given.largest) + 1:
        pca.partial_fit(rng.standard_normal((size, given.features), np.float32))
    print(f"{len(compiled)} compilations for {given.largest} sizes")
    compiled.clear()
    data, rows, calls = rng.standard_normal(shape, np.float32), 0, 0
    before, began, used = _resident(), time.perf_counter(), time.process_time()
    while time.perf_counter() - began < given.seconds:
        size = int(rng.integers(1, given.largest + 1))
        pca.partial_fit(data[:size])
        rows, calls = rows + size, calls + 1
    wall, used = time.perf_counter() - began, time.process_time() - used
    print(
        f"{rows / wall:.0f} rows/s, {1e3 * wall / calls:.2f} ms for each of {calls} calls "
        f"(of the processor {1e3 * used / calls:.2f} ms), {len(compiled)} further compilations, "
        f"peak memory {_resident() - before:.0f} MB larger at the end"
    )


def _resident() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
