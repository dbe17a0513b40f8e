"""The machine: the number of threads of a measurement, and the facts to record with it."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path


def thread_environment(threads: int) -> dict[str, str]:
    """Return environment variables that limit every library to this many threads."""
    count = str(threads)
    return {
        **os.environ,
        "OMP_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "NUMEXPR_NUM_THREADS": count,
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={count}",
        "JAX_PLATFORMS": "cpu",
        # Cold runs must compile, so no compilation may come from an earlier process.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "EIGENGAME_BENCH_THREADS": count,
    }


def threads_allowed() -> int:
    """Return the number of threads set by the driver, or all cores without a driver."""
    return int(os.environ.get("EIGENGAME_BENCH_THREADS", len(os.sched_getaffinity(0))))


def pin(threads: int) -> None:
    """Restrict this process and its children to the first `threads` available cores."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise ValueError(
            f"threads={threads}: only {len(cores)} cores are available; use at most that many."
        )
    os.sched_setaffinity(0, cores[:threads])


def available_bytes() -> int:
    """Return the memory that is available without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("/proc/meminfo has no MemAvailable: these benchmarks need Linux.")


def cpu_model() -> str:
    """Return the name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions(*packages: str) -> dict[str, str]:
    """Return Python's version and those of the installed ones among these packages."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Return the commit of this checkout, with "-dirty" if files differ from it."""
    command = ["git", "describe", "--always", "--dirty"]
    completed = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return completed.stdout.strip()


def circumstances(threads: int) -> dict[str, object]:
    """Return the date, the machine and the commit of a measurement."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads,
        "commit": commit(),
        # If the load exceeds the number of threads, other processes were running: do not trust the times.
        "load_before": round(os.getloadavg()[0], 2),
    }
