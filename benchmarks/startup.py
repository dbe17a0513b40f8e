"""The time of the first fit in a process, with and without the compilation cache on disk.

    python -m benchmarks.startup

Each time is measured in its own process, after imports; 60000 x 784, k = 16, batch 1024.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

FIT = """
import json, time
import numpy as np
from eigengame import EigenGamePCA, keep_compilations
import jax

data = np.random.default_rng(0).standard_normal((60000, 784), dtype=np.float32)
if {folder!r}:
    keep_compilations({folder!r})
jax.devices()
times, compiled = [], []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **_: compiled.append(seconds) if "backend_compile" in name else None
)
for _ in range(3):
    began = time.perf_counter()
    EigenGamePCA(16, batch_size=1024, random_state=0, algorithm="remembered", tol=None).fit(data)
    times.append(time.perf_counter() - began)
print(json.dumps([times[0], min(times[1:]), len(compiled)]))
"""


def first_fit(folder: str) -> tuple[float, float, int]:
    """Return the seconds of the first fit and of a later one, and the programs compiled or loaded."""
    completed = subprocess.run(
        [sys.executable, "-c", FIT.format(folder=folder)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "EIGENGAME_CACHE": "on" if folder else "off"},
    )
    first, later, programs = json.loads(completed.stdout)
    return float(first), float(later), int(programs)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, where in (
            ("no cache", ""),
            ("cache, first process", folder),
            ("cache, second process", folder),
        ):
            first, later, programs = first_fit(where)
            print(
                f"{name}: first fit {first:.2f} s, a later one {later:.2f} s, "
                f"start-up {first - later:.2f} s, {programs} programs"
            )


if __name__ == "__main__":
    main()
