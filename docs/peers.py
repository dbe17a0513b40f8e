"""Table of solvers on the landing page and in the README, from ``benchmarks/results/peers.json``.

python docs/peers.py            writes the table into docs/index.md and README.md
python docs/peers.py --check    exits with 1 if one of them is out of date
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
PAGES = (ROOT / "docs" / "index.md", ROOT / "README.md")
SOLVERS = {
    "eigengame": "**EigenGamePCA**, one pass",
    "eigengame-refined": "**EigenGamePCA**, certified within π/32",
    "sklearn-randomized": "scikit-learn `PCA`, randomized",
    "sklearn-covariance": "scikit-learn `PCA`, covariance_eigh",
    "sklearn-arpack": "scikit-learn `PCA`, arpack",
    "sklearn-incremental": "scikit-learn `IncrementalPCA`",
    "torch": "`torch.pca_lowrank`, 2 iterations",
    "torch-8": "`torch.pca_lowrank`, 8 iterations",
    "dask": "Dask `svd_compressed`",
    "lobpcg": "SciPy `lobpcg`",
    "block-krylov": "block Krylov, 6 passes",
}
"""Solvers in the table, with their names there."""
DATA = {
    "mnist": "MNIST, 60,000 x 784, 16 components",
    "tall-harmonic": "100,000 x 4,096 on disk, 32 components",
    "wide": "4,000 x 250,000 on disk, 32 components",
    "sparse": "20,000 x 50,000 sparse, 16 components",
}
"""Data sets in the table, with the headings of their columns."""

Row = Mapping[str, Any]


def text(rows: Sequence[Row]) -> str:
    """Return the table and the sentence on date and machine."""
    shown = {
        (row["data"], row["peer"]): row
        for row in rows
        if row["scale"] == "full" and row["data"] in DATA and row["peer"] in SOLVERS
    }
    best = {data: fastest([row for (of, _), row in shown.items() if of == data]) for data in DATA}
    lines = ["| | " + " | ".join(DATA.values()) + " |", "|---" * (len(DATA) + 1) + "|"]
    for peer, name in SOLVERS.items():
        cells = [cell(shown.get((data, peer)), best[data]) for data in DATA]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", circumstances(list(shown.values()))])


def fastest(rows: Sequence[Row]) -> float:
    """Return the shortest time of the solvers that find all components within pi/32."""
    return min(row["best_s"] for row in rows if row["status"] == "ok" and complete(row))


def complete(row: Row) -> bool:
    """Return whether all components are within pi/32."""
    return row["streak_32"] == row["asked"]


def cell(row: Row | None, best: float) -> str:
    """Return time, components within pi/32 and memory of one solver on one data set."""
    if row is None:
        return "not run"
    status = str(row["status"])
    if status.startswith("timeout after"):
        return f"> {status.removeprefix('timeout after ')}"
    if status.startswith("declined"):
        return status.rpartition("covariance ")[2]
    if status != "ok":
        return "not supported"
    seconds = f"{row['best_s']:.2g} s"
    if row["best_s"] == best and complete(row):
        seconds = f"**{seconds}**"
    return f"{seconds}, {row['streak_32']}/{row['asked']}, {row['memory_mb']['own']:.0f} MB"


def circumstances(rows: Sequence[Row]) -> str:
    """Return a sentence with machine, threads and date."""
    days = sorted({date.fromisoformat(row["date"][:10]) for row in rows})
    named = f"{days[0].day} {days[0]:%B %Y}"
    if days[-1] != days[0]:
        named += f" to {days[-1].day} {days[-1]:%B %Y}"
    machine = " and ".join(sorted({row["cpu"].replace("(R)", "") for row in rows}))
    threads = " or ".join(str(one) for one in sorted({row["threads"] for row in rows}))
    return (
        "Seconds of a warm run, leading components within π/32 of the exact ones, and memory beyond the data; bold: "
        f"the fastest that finds all. {threads} threads of {machine}, float32, {named} "
        "(`benchmarks/results/peers.json`)."
    )


def written() -> dict[Path, str]:
    """Return the pages that contain the table, with their up-to-date contents."""
    table = text(json.loads(RESULTS.read_text())["rows"])
    pattern = re.compile(r"(<!-- peers: begin -->\n).*(\n<!-- peers: end -->)", re.S)
    found = {}
    for path in PAGES:
        assert pattern.search(path.read_text()), f"{path} has no markers"
        found[path] = pattern.sub(lambda match: match[1] + table + match[2], path.read_text())
    return found


def main() -> None:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if out of date"
    )
    check = parser.parse_args().check
    old = [path for path, page in written().items() if path.read_text() != page]
    for path in old:
        print(f"{path.relative_to(ROOT)}: {'out of date' if check else 'updated'}")
        if not check:
            path.write_text(written()[path])
    sys.exit(1 if check and old else 0)


if __name__ == "__main__":
    main()
