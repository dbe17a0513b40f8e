"""Free memory of the host."""

from __future__ import annotations

from pathlib import Path


def free_memory() -> int | None:
    """Return the free host memory in bytes, or None if unknown."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None
