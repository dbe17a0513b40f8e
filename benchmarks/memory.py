"""Peak memory of this process, with and without the pages of memory-mapped files."""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

MB = 2**20
INTERVAL = 0.01


def status_bytes(field: str, pid: int | str = "self") -> int:
    """Return a field of /proc/PID/status, such as VmHWM, VmRSS or RssAnon, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise KeyError(f"/proc/{pid}/status has no {field}: these benchmarks need Linux 4.5 or newer.")


class AnonymousPeak:
    """The largest amount of anonymous memory seen since the last `reset`.

    The kernel records a peak of all resident memory (VmHWM), which includes mapped pages: a process that
    streams a `np.memmap` seems to hold the whole file. There is no such peak for anonymous memory
    (RssAnon), so a forked child process samples it; a thread would have to wait for the interpreter lock.
    Peaks shorter than 10 ms can be missed.

    It forks, so create it before threads exist, that is before importing libraries.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)
        self.reset()
        watched = os.getpid()
        if os.fork() == 0:
            try:
                self._watch(watched)
            finally:
                os._exit(0)

    def reset(self) -> None:
        """Forget earlier samples."""
        self._shared[:8] = struct.pack("q", 0)

    def bytes(self) -> int:
        """Return the peak so far, including the memory in use now."""
        return max(struct.unpack("q", self._shared[:8])[0], status_bytes("RssAnon"))

    def _watch(self, watched: int) -> None:
        """Sample until the watched process has ended."""
        os.closerange(
            0, 3
        )  # otherwise readers of the watched process's output would wait for this one
        while os.getppid() == watched:
            seen = status_bytes("RssAnon", watched)
            if seen > struct.unpack("q", self._shared[:8])[0]:
                self._shared[:8] = struct.pack("q", seen)
            time.sleep(INTERVAL)
