"""The machine: how many threads a measurement may use, and what to write down about it."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path


def thread_environment(threads: int) -> dict[str, str]:
    """Return the environment in which every library keeps to this many threads."""
    count = str(threads)
    return {
        **os.environ,
        "OMP_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "NUMEXPR_NUM_THREADS": count,
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={count}",
        "JAX_PLATFORMS": "cpu",
        # A cold run is one that compiles: nothing may come from an earlier process.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "EIGENGAME_BENCH_THREADS": count,
    }


def threads_allowed() -> int:
    """Return the thread count that the driver gave this process (all cores without a driver)."""
    return int(os.environ.get("EIGENGAME_BENCH_THREADS", len(os.sched_getaffinity(0))))


def pin(threads: int) -> None:
    """Keep this process, and all it starts, to the first `threads` cores it may use."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise ValueError(
            f"threads={threads}: this machine lends {len(cores)} cores; give at most that."
        )
    os.sched_setaffinity(0, cores[:threads])


def available_bytes() -> int:
    """Return the memory that can be had now without swapping."""
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
    """Return the commit of this checkout, with "-dirty" where files differ from it."""
    command = ["git", "describe", "--always", "--dirty"]
    told = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return told.stdout.strip()


def circumstances(threads: int) -> dict[str, object]:
    """Return what a reader of one result wants to know about when and where it was measured."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads,
        "commit": commit(),
        # Others on the machine show here: above the thread count, times are not to be trusted.
        "load_before": round(os.getloadavg()[0], 2),
    }
