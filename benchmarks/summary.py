"""Prints the results at full scale as the tables of docs/benchmarks.md.

python -m benchmarks.summary [RESULTS.json]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = "| peer | passes | warm s | cold s | max angle | pi/8 | pi/32 | own MB |"


def line(row: dict[str, Any]) -> str:
    """Return one row of the table, with the reason if a peer has no result."""
    if row["status"] != "ok":
        return f"| {row['peer']} | - | {row['status']} | | | | | |"
    k = row["asked"]
    return (
        f"| {row['peer']} | {row['passes']} | {row['best_s']:.2f} | {row['cold_s']:.2f} "
        f"| {row['max_angle']:.1e} | {row['streak_8']}/{k} | {row['streak_32']}/{k} "
        f"| {row['memory_mb']['own']:.0f} |"
    )


def main() -> None:
    default = Path(__file__).parent / "results" / "peers.json"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    rows = [row for row in json.loads(path.read_text())["rows"] if row["scale"] == "full"]
    for data in dict.fromkeys(row["data"] for row in rows):
        print(f"\n### {data}\n\n{HEAD}\n" + "|---" * HEAD.count(" | ") + "|---|")
        mine = [row for row in rows if row["data"] == data]
        for row in sorted(mine, key=lambda row: row.get("best_s") or float("inf")):
            print(line(row))


if __name__ == "__main__":
    main()
