"""Runs that are killed again and again: each must resume to the same bits.

    python -m benchmarks.kills [--kills 100] [--seed 0]

Every run is `eigengame fit` with a checkpoint folder in a process of its own. It is ended by SIGKILL, SIGTERM or
SIGINT, either at a random time or at a random call of a function of the package, so that phases that take no time
are hit too. After up to three kills the same command runs to its end. Its model must equal that of a run that was
never killed, to the last bit.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.machine import circumstances
from eigengame import EigenGamePCA
from eigengame._system.array_file import read_arrays

ROOT = Path(__file__).parents[1]
ROWS, FEATURES = 4000, 24
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 130
"""Exit code of a command that was interrupted."""

ROUTES = {
    "one pass": (),
    "refined": ("--tol", "0.02"),
    "exact": ("--algorithm", "exact"),
    "by steps": ("--algorithm", "mu", "--passes", "2"),
}
"""Options of the runs, which take different passes."""

PROGRAM = """
import os, signal, sys
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs without Ctrl-C
at, number, note, *arguments = sys.argv[1:]
seen = 0

def count(frame, event, _):
    global seen
    if event == "call" and "/eigengame/" in frame.f_code.co_filename:
        seen += 1
        if seen == int(at):
            Path(note).write_text(frame.f_code.co_filename.rsplit("/eigengame/", 1)[1])
            os.kill(os.getpid(), int(number))

sys.setprofile(count)
from eigengame.cli import main
try:
    main(arguments)
finally:
    sys.setprofile(None)
    if int(at) == 0:
        Path(note).write_text(str(seen))
"""
"""The command line in a process that sends itself a signal at the call `at` of a function of the package."""


@dataclass
class Counts:
    """What has happened so far.

    Attributes
    ----------
    kills : Counter
        Signals that ended a process, by name.
    phases : Counter
        Parts of the package in which a process was, where that is known.
    resumed, completed : int
        Runs that were resumed; and processes that ended before their signal, or as it arrived.
    problems : list of str
    """

    kills: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    completed: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        phases = ", ".join(f"{name} {count}" for name, count in self.phases.most_common())
        return (
            f"{self.kills.total()} kills ({kills}), {self.resumed} runs resumed, {self.completed} processes ended "
            f"before their signal, {len(self.problems)} problems\nkilled in: {phases}"
        )


class Runs:
    """Runs of one route in a folder.

    Parameters
    ----------
    folder : path
        For data, checkpoints and models.
    route : str
    """

    def __init__(self, folder: Path, route: str) -> None:
        self.folder, self.route, self.made = folder, route, 0
        began = time.perf_counter()
        self.expected = self._path("expected")
        code = self._wait(self._start("expected", 0, signal.SIGTERM))
        if code:
            raise RuntimeError(f"{route}: a run that nobody killed ended with {code}.")
        self.seconds = time.perf_counter() - began
        self.calls = int((folder / "note").read_text())

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.route} {name}.safetensors"

    def _start(self, name: str, at: int, number: int) -> subprocess.Popen[str]:
        (self.folder / "note").unlink(missing_ok=True)
        options = ["fit", "data.npy", "-k", "4", "--batch-size", "256", *ROUTES[self.route]]
        options += ["--checkpoint", f"{self.route} {name}", "--checkpoint-every", "0", "-q"]
        options += ["-o", str(self._path(name)), "--force"]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(at), str(int(number)), "note", *options],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _wait(self, process: subprocess.Popen[str]) -> int:
        self.said = process.communicate(timeout=300)[1]
        return process.returncode

    def killed_and_resumed(self, times: int, rng: np.random.Generator, counts: Counts) -> None:
        """Kill a run a number of times, resume it, and compare its model."""
        self.made += 1
        name, killed = str(self.made), 0
        for _ in range(times):
            number = SIGNALS[rng.integers(len(SIGNALS))]
            if not self._killed(name, number, rng, counts):
                break  # the run has ended
            killed += 1
        code = self._wait(self._start(name, -1, signal.SIGTERM))
        counts.resumed += killed > 0
        if code:
            counts.problems.append(f"{self.route} {name}: resumed with {code}: {self.said}")
        elif difference := self._difference(name):
            counts.problems.append(f"{self.route} {name}: {difference}")

    def _killed(self, name: str, number: int, rng: np.random.Generator, counts: Counts) -> bool:
        """Start a process and send it a signal; return whether that ended it."""
        by_time = rng.uniform() < 0.4
        process = self._start(name, -1 if by_time else int(rng.integers(1, self.calls)), number)
        if by_time:
            time.sleep(rng.uniform(0, self.seconds))
            process.send_signal(number)
        code, note = self._wait(process), self.folder / "note"
        if code == 0:
            counts.completed += 1
            if note.exists():
                counts.problems.append(f"{self.route} {name}: signal {number} was lost")
            return False
        # Before the command has begun, Python itself ends at a signal.
        if code not in (-number, INTERRUPTED):
            counts.problems.append(f"{self.route} {name}: ended with {code}: {self.said}")
        counts.kills[signal.Signals(number).name] += 1
        counts.phases[note.read_text().removesuffix(".py") if note.exists() else "(by time)"] += 1
        return True

    def _difference(self, name: str) -> str | None:
        """Return how the model of a resumed run differs from the expected one."""
        one, other = (read_arrays(path)[0] for path in (self._path(name), self.expected))
        if one.keys() != other.keys():
            return f"arrays {sorted(one.keys() ^ other.keys())}"
        for key, array in one.items():
            if array.tobytes() != other[key].tobytes():
                return f"{key} differs"
        mine, theirs = (EigenGamePCA.load(path) for path in (self._path(name), self.expected))
        if not np.array_equal(mine.certificate_.angle, theirs.certificate_.angle, equal_nan=True):
            return "the certificate differs"
        left = [path.name for path in (self.folder / f"{self.route} {name}").glob(".*")]
        return f"{left} are left in the folder" if left else None


def run(kills: int, seed: int) -> Counts:
    """Kill runs of all routes until there are this many kills."""
    rng, counts = np.random.default_rng(seed), Counts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scales = 0.8 ** np.arange(FEATURES)
        rows = rng.normal(size=(ROWS, FEATURES)) * scales + 1
        np.save(folder / "data.npy", rows.astype(np.float32))
        routes = [Runs(folder, route) for route in ROUTES]
        while counts.kills.total() < kills:
            for one in routes:
                left = kills - counts.kills.total()
                if left > 0:
                    one.killed_and_resumed(min(int(rng.integers(1, 4)), left), rng, counts)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    facts = circumstances(len(os.sched_getaffinity(0)))
    counts = run(given.kills, given.seed)
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(counts)
    print("\n".join(counts.problems))
    sys.exit(bool(counts.problems))


if __name__ == "__main__":
    main()
