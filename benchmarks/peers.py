"""The estimator compared with other solvers: time, memory, passes and angles.

    python -m benchmarks.peers --list
    python -m benchmarks.peers --data harmonic,wide --peers eigengame,block-krylov
    python -m benchmarks.peers --scale small --out /tmp/peers.json

Each peer runs on each data set in its own process, on the same cores, one after the other. Results are written
after each row, so that an interrupted run loses nothing.
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
from benchmarks.other_solvers import OTHER_SOLVERS
from benchmarks.own_solvers import OWN_SOLVERS
from benchmarks.tables import table

ROOT = Path(__file__).parents[1]
PEERS = OWN_SOLVERS | OTHER_SOLVERS


def main() -> None:
    """Run the chosen peers on the chosen data sets, and print a table for each data set."""
    options = arguments()
    if options.list:
        print(listing())
        return
    machine.pin(options.threads)
    results = Results(options.out)
    for data in options.data:
        refusal = build_data(data, options)
        rate = None if refusal else machine_rate(data, options)
        rows = []
        for peer in options.peers:
            print(f"{data}: {peer} ...", file=sys.stderr, flush=True)
            where = machine.circumstances(options.threads)
            row = {"data": data, "scale": options.scale, "peer": peer, **where}
            row |= {"status": refusal} if refusal else measure(peer, data, options)
            row |= compared_to_gemm(row, rate)
            rows.append(row)
            results.keep(row)
        print("\n" + table(title(data, options, rate), rows) + "\n", flush=True)


def build_data(data: str, options: argparse.Namespace) -> str | None:
    """Build a data set if it does not exist; return None, or the reason why it cannot be built."""
    ended = start("datasets", [data, "--scale", options.scale], options.threads, timeout=None)
    return None if ended.returncode == 0 else f"no data: {last_line(ended.stderr)}"


def measure(peer: str, data: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the row of the worker, or a row with the reason why there is none."""
    command = ["--peer", peer, "--data", data, "--scale", options.scale]
    command += ["--repeats", str(options.repeats), "--timeout", str(options.timeout)]
    memory = options.memory or 0.9e-9 * machine.available_bytes()
    command += ["--memory", f"{memory:.2f}"]
    try:
        ended = start("worker", command, options.threads, options.timeout)
    except subprocess.TimeoutExpired:
        return {"status": f"timeout after {options.timeout:g} s"}
    try:
        row = json.loads(last_line(ended.stdout))
    except json.JSONDecodeError:
        return {"status": f"died (exit {ended.returncode}): {last_line(ended.stderr)}"}
    if row["status"].startswith(("failed", "out of memory")):
        row["trace"] = ended.stderr[-2000:]
    return row


def machine_rate(data: str, options: argparse.Namespace) -> float | None:
    """Return the operations per second of plain float32 products at the shapes of the data set."""
    if DATA_SETS[data].store == "sparse":
        return None
    size = DATA_SETS[data].size(options.scale)
    command = ["--rows", str(size.n), "--columns", str(size.d)]
    command += ["--batch", str(size.batch), "--players", str(2 * size.k)]
    ended = start("gemm", command, options.threads, options.timeout)
    return 1e9 * json.loads(last_line(ended.stdout))["gflops"] if ended.returncode == 0 else None


def compared_to_gemm(row: dict[str, Any], rate: float | None) -> dict[str, float]:
    """Return the rate of the necessary products in a fit, relative to the rate of plain products."""
    if not (rate and row.get("players") and row.get("passes") and row.get("best_s")):
        return {}
    size = DATA_SETS[row["data"]].size(row["scale"])
    work = row["passes"] * flops(size.n, size.d, row["players"])
    return {"gemm_gflops": rate / 1e9, "gemm_share": work / row["best_s"] / rate}


def start(
    module: str, arguments: list[str], threads: int, timeout: float | None
) -> subprocess.CompletedProcess[str]:
    """Run a module of this folder in its own process."""
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
    """Return the last line that is not empty."""
    return next((part for part in reversed(text.splitlines()) if part.strip()), "")


class Results:
    """The file of results: one row for each scale, data set, peer, machine and thread count."""

    KEY = ("scale", "data", "peer", "cpu", "threads")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = json.loads(path.read_text())["rows"] if path.exists() else []

    def keep(self, row: dict[str, Any]) -> None:
        """Add a row or replace its predecessor, and write the file atomically."""
        key = [row[name] for name in self.KEY]
        self.rows = [old for old in self.rows if [old[name] for name in self.KEY] != key] + [row]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps({"rows": self.rows}, indent=1) + "\n")
        draft.rename(self.path)


def title(data: str, options: argparse.Namespace, rate: float | None) -> str:
    """Return the heading of a table."""
    size, store = DATA_SETS[data].size(options.scale), DATA_SETS[data].store
    speed = f", gemm {rate / 1e9:.0f} GFLOP/s" if rate else ""
    return (
        f"== {data} ({options.scale}): {size.n} x {size.d} {store}, k = {size.k}, "
        f"batch {size.batch}, {options.threads} threads{speed}"
    )


def listing() -> str:
    """Return the names of data sets and peers, each with a short description."""
    lines = ["data sets:"]
    for name, data in DATA_SETS.items():
        size = data.full
        lines.append(f"  {name:22} {size.n} x {size.d}, k = {size.k}, {data.store}")
    lines.append("peers:")
    lines += [f"  {name:22} {peer.about}" for name, peer in PEERS.items()]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """Return the command-line options, with checked names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA_SETS), help="names, separated by commas")
    parser.add_argument("--peers", default=",".join(PEERS), help="names, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="warm runs of each peer")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each peer")
    parser.add_argument(
        "--memory",
        type=float,
        default=0.0,
        help="memory of each peer in GB (0: 90 %% of the free memory)",
    )
    parser.add_argument("--scale", choices=("small", "full"), default="full")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/peers.json")
    parser.add_argument("--list", action="store_true", help="list data sets and peers, run nothing")
    options = parser.parse_args()
    for option, known in (("data", DATA_SETS), ("peers", PEERS)):
        names = getattr(options, option).split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"--{option}: {', '.join(unknown)} not among {', '.join(known)}")
        setattr(options, option, names)
    return options


if __name__ == "__main__":
    main()
