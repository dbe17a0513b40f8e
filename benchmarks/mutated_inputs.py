"""Read mutated inputs of every format in child processes with limits on memory and time, and count the results.

    python -m benchmarks.mutated_inputs [--cases 1000000] [--seed 0] [--formats npy,csv]
        [--processes 2] [--out FILE]
    python -m benchmarks.mutated_inputs --only CASE [--seed 0] [--formats ...]

Case number i of a seed is always the same input, and `--only` reads it in this process, with the traceback of an
error. A child reads many cases. It is replaced after a crash or a time-out, and after `CASES_PER_CHILD` cases. The
exit code is 1 if a case was neither answered nor refused with a message that names the file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.mutation_check import KINDS, Verdict, check
from benchmarks.mutation_seeds import MAKERS, Seed, make_seeds
from benchmarks.mutations import Content, mutate

CASES_PER_CHILD = 10_000
RETRY = 3
"""Exit code of a child that ran out of memory after other cases, because libraries leak. The case is read again."""

SECONDS = 20
"""Time limit of one case."""

MEMORY = 6 * 2**30
"""Limit of the address space of a child. JAX and its libraries reserve about 2 GiB without using it."""


def files_of(
    case: int, seed: int, formats: Sequence[str], seeds: dict[str, Seed]
) -> tuple[str, Content]:
    """Return the format and the files of a case."""
    draw = random.Random(f"{seed} {case}")
    name = formats[case % len(formats)]
    return name, mutate(seeds[name].files, draw)


def write(folder: Path, files: Content) -> None:
    """Replace the content of a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    folder.mkdir(parents=True, exist_ok=True)


def child(first: int, last: int, seed: int, formats: Sequence[str], folder: Path) -> None:
    """Read cases in this process, and print one line before and one after each of them."""
    seeds = make_seeds(folder / "seeds", formats)
    limit = (MEMORY, MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, limit)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, also within compiled code
    say = sys.stdout
    for case in range(first, last):
        name, files = files_of(case, seed, formats, seeds)
        write(folder / "input", files)
        print(f"begin {case}", file=say, flush=True)
        signal.alarm(SECONDS)
        verdict = check(name, folder / "input" / seeds[name].target, seeds[name])
        signal.alarm(0)
        exhausted = verdict.kind == "out of memory" or "start new thread" in verdict.detail
        if exhausted and case > first:
            sys.exit(RETRY)
        print(json.dumps([case, verdict.kind, verdict.detail[:400]]), file=say, flush=True)


class Tally:
    """Counts of verdicts by format, and examples of those that should not be."""

    def __init__(self, formats: Sequence[str]) -> None:
        self.formats, self.counts = formats, Counter[tuple[str, str]]()
        self.examples: dict[tuple[str, str], list[int]] = {}
        self._lock = threading.Lock()

    def add(self, case: int, verdict: Verdict) -> None:
        """Count one case."""
        name = self.formats[case % len(self.formats)]
        with self._lock:
            self.counts[name, verdict.kind] += 1
            if verdict.detail == "other rows":
                self.counts[name, "other rows"] += 1
            if verdict.kind not in KINDS[:2]:
                words = " ".join(re.sub(r"\d+", "#", f"{verdict.kind}: {verdict.detail}").split())[
                    :160
                ]
                self.examples.setdefault((name, words), []).append(case)

    @property
    def bad(self) -> int:
        """Number of cases that were neither answered nor refused well."""
        return sum(n for (_, kind), n in self.counts.items() if kind in KINDS[2:])

    def table(self) -> str:
        """Return the counts as a Markdown table."""
        columns = (*KINDS, "other rows")
        lines = [f"| format | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for name in (*self.formats, "all"):
            numbers = [
                sum(
                    n
                    for (at, kind), n in self.counts.items()
                    if kind == one and name in (at, "all")
                )
                for one in columns
            ]
            lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} |")
        return "\n".join(lines)

    def report(self) -> str:
        """Return one line for each different problem, with its first cases."""
        return "\n".join(
            f"{name}: {words} (cases {cases[:3]}, {len(cases)} in all)"
            for (name, words), cases in sorted(self.examples.items(), key=lambda one: -len(one[1]))
        )


def run(
    cases: range, seed: int, formats: Sequence[str], processes: int, tally: Tally, tell: bool = True
) -> None:
    """Read a range of cases in several children at a time."""
    waiting = [
        range(begin, min(begin + CASES_PER_CHILD // 20, cases.stop))
        for begin in range(cases.start, cases.stop, max(CASES_PER_CHILD // 20, 1))
    ]
    waiting.reverse()
    lock, began = threading.Lock(), time.perf_counter()

    def work() -> None:
        while True:
            with lock:
                # A child takes several parts, so that its start does not count.
                parts = [waiting.pop() for _ in range(min(20, -(-len(waiting) // processes)))]
            if not parts:
                return
            begin = parts[0].start
            while begin < parts[-1].stop:
                begin = _run_child(begin, parts[-1].stop, seed, formats, tally)
            if tell:
                done = sum(n for (_, kind), n in tally.counts.items() if kind in KINDS)
                rate = done / (time.perf_counter() - began)
                print(f"{done:,} cases, {rate:.0f}/s, {tally.bad} bad", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(processes) as pool:
        for one in [pool.submit(work) for _ in range(processes)]:
            one.result()


def _run_child(begin: int, end: int, seed: int, formats: Sequence[str], tally: Tally) -> int:
    """Read cases in one child until they are done or it dies; return the next case."""
    room = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with (
        tempfile.TemporaryDirectory(prefix="mutated-", dir=room) as folder,
        tempfile.TemporaryFile("w+") as errors,
    ):
        numbers = [str(begin), str(end), str(seed)]
        with subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.mutated_inputs",
                "--child",
                *numbers,
                ",".join(formats),
                folder,
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "EIGENGAME_CACHE": "off", "MALLOC_ARENA_MAX": "2"},
        ) as process:
            assert process.stdout is not None
            current, done = begin - 1, begin - 1
            for line in process.stdout:
                if line.startswith("begin "):
                    current = int(line.split()[1])
                elif line.startswith("["):
                    case, kind, detail = json.loads(line)
                    tally.add(case, Verdict(kind, detail))
                    done = case
            code = process.wait()
        errors.seek(0)
        last = errors.read().strip().splitlines()[-1:]
    if code == 0:
        return end
    if code == RETRY:
        return current
    if current == done:
        raise RuntimeError(f"the child failed before a case, with code {code}: {last}")
    kind = "timed out" if code == -signal.SIGALRM else "crashed"
    detail = "" if kind == "timed out" else f"exit code {code} {' '.join(last)}"
    tally.add(current, Verdict(kind, detail))
    return current + 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", default=",".join(MAKERS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", type=int)
    parser.add_argument("--child", nargs=5, metavar=("FIRST", "LAST", "SEED", "FORMATS", "FOLDER"))
    given = parser.parse_args(arguments)
    if given.child:
        first, last, seed, formats, folder = given.child
        child(int(first), int(last), int(seed), formats.split(","), Path(folder))
        return 0
    formats = given.formats.split(",")
    if given.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            seeds = make_seeds(Path(folder), formats)
            name, files = files_of(given.only, given.seed, formats, seeds)
            write(Path(folder) / "input", files)
            target = Path(folder) / "input" / seeds[name].target
            print(name, target, check(name, target, seeds[name], raising=True))
        return 0
    tally = Tally(formats)
    run(range(given.first, given.first + given.cases), given.seed, formats, given.processes, tally)
    print(tally.table())
    print(tally.report())
    if given.out is not None:
        given.out.write_text(tally.table() + "\n")
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
