"""Our estimator against its peers: time, memory, passes and angles, side by side.

    python -m benchmarks.peers --list
    python -m benchmarks.peers --data harmonic,wide --peers eigengame,block-krylov
    python -m benchmarks.peers --scale small --out /tmp/peers.json

Every peer runs on every data set in a process of its own, on the same cores, one after the other.
Results are written after each row: what is measured is never lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.datasets import DATA_SETS
from benchmarks.gemm import flops
from benchmarks.ours import OURS
from benchmarks.rivals import RIVALS
from benchmarks.tables import table

ROOT = Path(__file__).parents[1]
PEERS = OURS | RIVALS


def main() -> None:
    """Run every asked peer on every asked data set, printing a table for each set."""
    asked = arguments()
    if asked.list:
        print(listing())
        return
    machine.pin(asked.threads)
    results = Results(asked.out)
    for data in asked.data:
        refusal = built(data, asked)
        rate = None if refusal else machine_rate(data, asked)
        rows = []
        for peer in asked.peers:
            print(f"{data}: {peer} ...", file=sys.stderr, flush=True)
            where = machine.circumstances(asked.threads)
            row = {"data": data, "scale": asked.scale, "peer": peer, **where}
            row |= {"status": refusal} if refusal else measured(peer, data, asked)
            row |= compared_to_gemm(row, rate)
            rows.append(row)
            results.keep(row)
        print("\n" + table(title(data, asked, rate), rows) + "\n", flush=True)


def built(data: str, asked: argparse.Namespace) -> str | None:
    """Build a data set where it is missing, and return why it cannot be had (None: it is there)."""
    ended = start("datasets", [data, "--scale", asked.scale], asked.threads, timeout=None)
    return None if ended.returncode == 0 else f"no data: {last_line(ended.stderr)}"


def measured(peer: str, data: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Return what the worker says, or why it says nothing."""
    command = ["--peer", peer, "--data", data, "--scale", asked.scale]
    command += ["--repeats", str(asked.repeats), "--timeout", str(asked.timeout)]
    memory = asked.memory or 0.9e-9 * machine.available_bytes()
    command += ["--memory", f"{memory:.2f}"]
    try:
        ended = start("worker", command, asked.threads, asked.timeout)
    except subprocess.TimeoutExpired:
        return {"status": f"timeout after {asked.timeout:g} s"}
    try:
        row = json.loads(last_line(ended.stdout))
    except json.JSONDecodeError:
        return {"status": f"died (exit {ended.returncode}): {last_line(ended.stderr)}"}
    if row["status"].startswith(("failed", "out of memory")):
        row["trace"] = ended.stderr[-2000:]
    return row


def machine_rate(data: str, asked: argparse.Namespace) -> float | None:
    """Return the operations a second of plain float32 products at the data set's shapes."""
    if DATA_SETS[data].store == "sparse":
        return None
    size = DATA_SETS[data].size(asked.scale)
    command = ["--rows", str(size.n), "--columns", str(size.d)]
    command += ["--batch", str(size.batch), "--players", str(2 * size.k)]
    ended = start("gemm", command, asked.threads, asked.timeout)
    return 1e9 * json.loads(last_line(ended.stdout))["gflops"] if ended.returncode == 0 else None


def compared_to_gemm(row: dict[str, Any], rate: float | None) -> dict[str, float]:
    """Return the share of the machine's own rate that a fit's necessary products reached."""
    if not (rate and row.get("players") and row.get("passes") and row.get("best_s")):
        return {}
    size = DATA_SETS[row["data"]].size(row["scale"])
    work = row["passes"] * flops(size.n, size.d, row["players"])
    return {"gemm_gflops": rate / 1e9, "gemm_share": work / row["best_s"] / rate}


def start(
    module: str, arguments: list[str], threads: int, timeout: float | None
) -> subprocess.CompletedProcess[str]:
    """Run a module of this folder in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=ROOT,
        env=machine.thread_environment(threads),
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )


def last_line(text: str) -> str:
    """Return the last line that holds anything."""
    return next((part for part in reversed(text.splitlines()) if part.strip()), "")


class Results:
    """The file of results: one row for each scale, data set, peer, machine and thread count."""

    KEY = ("scale", "data", "peer", "cpu", "threads")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = json.loads(path.read_text())["rows"] if path.exists() else []

    def keep(self, row: dict[str, Any]) -> None:
        """Put a row in the place of its predecessor and write the file, whole or not at all."""
        key = [row[name] for name in self.KEY]
        self.rows = [old for old in self.rows if [old[name] for name in self.KEY] != key] + [row]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps({"rows": self.rows}, indent=1) + "\n")
        draft.rename(self.path)


def title(data: str, asked: argparse.Namespace, rate: float | None) -> str:
    """Return the heading of a table."""
    size, store = DATA_SETS[data].size(asked.scale), DATA_SETS[data].store
    speed = f", gemm {rate / 1e9:.0f} GFLOP/s" if rate else ""
    return (
        f"== {data} ({asked.scale}): {size.n} x {size.d} {store}, k = {size.k}, "
        f"batch {size.batch}, {asked.threads} threads{speed}"
    )


def listing() -> str:
    """Return the names of data sets and peers, each with one line about it."""
    lines = ["data sets:"]
    for name, data in DATA_SETS.items():
        size = data.full
        lines.append(f"  {name:22} {size.n} x {size.d}, k = {size.k}, {data.store}")
    lines.append("peers:")
    lines += [f"  {name:22} {peer.about}" for name, peer in PEERS.items()]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """Return what was asked for, names checked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA_SETS), help="names, separated by commas")
    parser.add_argument("--peers", default=",".join(PEERS), help="names, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="warm runs of each peer")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each peer")
    parser.add_argument(
        "--memory", type=float, default=0.0, help="GB for each peer (0: 90% of free)"
    )
    parser.add_argument("--scale", choices=("small", "full"), default="full")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/peers.json")
    parser.add_argument("--list", action="store_true", help="name data sets and peers, run nothing")
    asked = parser.parse_args()
    for option, known in (("data", DATA_SETS), ("peers", PEERS)):
        names = getattr(asked, option).split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"--{option}: {', '.join(unknown)} not among {', '.join(known)}")
        setattr(asked, option, names)
    return asked


if __name__ == "__main__":
    main()
