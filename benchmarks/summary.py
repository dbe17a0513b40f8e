"""One page of results: for each data set the peers in order of time, their ratio to eigengame, and the limit.

    python -m benchmarks.summary [RESULTS.json]

Ratios are to the fastest fit of eigengame whose components are all within pi/32, if there is one. A peer that had
no time for a second run is compared by its first. The limit is the time of the plain products of one pass of that
fit, at the rate of products of the same shapes on the same cores. A peer that failed, declined or took too long has
a line with the reason; so has one that was not run.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from benchmarks.datasets import DATA_SETS
from benchmarks.gemm import flops
from benchmarks.peers import PEERS

HEAD = "| peer | seconds | ratio | passes | first | largest angle | within pi/32 | own MB |"
RULE = "|---" * (HEAD.count("|") - 1) + "|"


def page(rows: list[dict[str, Any]]) -> str:
    """Return the tables of all data sets that have results at full scale."""
    full = [row for row in rows if row["scale"] == "full"]
    found = dict.fromkeys(row["data"] for row in full)
    names = [name for name in DATA_SETS if name in found]
    return "\n\n".join(
        section(name, [row for row in full if row["data"] == name]) for name in names
    )


def section(name: str, rows: list[dict[str, Any]]) -> str:
    """Return the heading, the circumstances and the table of one data set."""
    size, ours = DATA_SETS[name].size("full"), reference(rows)
    ordered = sorted(rows, key=seconds)
    missing = [peer for peer in PEERS if peer not in {row["peer"] for row in rows}]
    lines = [line(row, None if ours is None else ours["best_s"]) for row in ordered]
    lines += [f"| {peer} | not run | | | | | | |" for peer in missing]
    heading = f"### {name}: {size.n} x {size.d}, k = {size.k}, {DATA_SETS[name].store}"
    return "\n".join([heading, "", circumstances(rows, ours), "", HEAD, RULE, *lines])


def seconds(row: dict[str, Any]) -> float:
    """Return the time of the best warm run, or of the first one if there was no time for another."""
    return float(row.get("best_s") or row.get("cold_s") or math.inf)


def reference(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the fastest row of eigengame, of those with all components within pi/32 if there are any."""
    own = [row for row in rows if row["peer"].startswith("eigengame") and row.get("best_s")]
    good = [row for row in own if row["streak_32"] == row["asked"]]
    return min(good or own, key=lambda row: row["best_s"], default=None)


def circumstances(rows: list[dict[str, Any]], ours: dict[str, Any] | None) -> str:
    """Return a sentence with machine and dates, and one with the limit."""
    dates = sorted(row["date"][:10] for row in rows)
    cpus = " and ".join(sorted({row["cpu"] for row in rows}))
    days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    told = f"{cpus}, {rows[0]['threads']} threads, {days}."
    rate = None if ours is None else ours.get("gemm_gflops")
    if rate is None or ours is None:
        return told
    size = DATA_SETS[ours["data"]].size("full")
    limit = flops(size.n, size.d, ours["players"]) / (1e9 * rate)
    return (
        f"{told} Plain products run at {rate:.0f} GFLOP/s: those of one pass with {ours['players']} players take "
        f"{limit:.2f} s."
    )


def line(row: dict[str, Any], ours: float | None) -> str:
    """Return one row of the table, with the reason if a peer has no result."""
    if row["status"] != "ok":
        return f"| {row['peer']} | {row['status']} | | | | | | |"
    ratio = f"{seconds(row) / ours:.2f}" if ours else ""
    warm = "-" if row["best_s"] is None else f"{row['best_s']:.2f}"
    passes = "" if row["passes"] is None else row["passes"]
    return (
        f"| {row['peer']} | {warm} | {ratio} | {passes} | {row['cold_s']:.2f} "
        f"| {row['max_angle']:.1e} | {row['streak_32']}/{row['asked']} | {row['memory_mb']['own']:.0f} |"
    )


def main() -> None:
    """Print the page."""
    default = Path(__file__).parent / "results" / "peers.json"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    print(page(json.loads(path.read_text())["rows"]))


if __name__ == "__main__":
    main()
