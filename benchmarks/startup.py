"""How long the first fit of a process takes: with nothing compiled, and with compilations kept on disk.

    python -m benchmarks.startup

Each figure is a process of its own, timed after imports; 60000 x 784, k = 16, batch 1024.
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
    EigenGamePCA(16, batch_size=1024, random_state=0).fit(data)
    times.append(time.perf_counter() - began)
print(json.dumps([times[0], min(times[1:]), len(compiled)]))
"""


def first_fit(folder: str) -> tuple[float, float, int]:
    """Return the seconds of the first fit and of a later one, and the programs compiled or loaded."""
    told = subprocess.run(
        [sys.executable, "-c", FIT.format(folder=folder)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )
    first, later, programs = json.loads(told.stdout)
    return float(first), float(later), int(programs)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, where in (
            ("nothing kept", ""),
            ("compilations kept, first process", folder),
            ("compilations kept, second process", folder),
        ):
            first, later, programs = first_fit(where)
            print(
                f"{name}: first fit {first:.2f} s, a later one {later:.2f} s, "
                f"start-up {first - later:.2f} s, {programs} programs"
            )


if __name__ == "__main__":
    main()
