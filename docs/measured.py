"""Tables of measurements in the documentation and the README, from ``benchmarks/results``.

python docs/measured.py            writes the tables into their pages
python docs/measured.py --check    exits with 1 if one of them is out of date
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
RESULTS = ROOT / "benchmarks" / "results"
PAGES = {
    "docs/index.md": ["peers"],
    "README.md": ["peers"],
    "docs/choosing.md": ["defaults", "paper"],
    "docs/benchmarks.md": ["solvers"],
}
"""The pages, with the names of their tables."""
SOLVERS = {
    "eigengame-auto": "**EigenGamePCA**, by default: certified within 0.05 rad",
    "eigengame": "**EigenGamePCA**, the game, one pass",
    "eigengame-refined": "**EigenGamePCA**, the game, certified within π/32",
    "sklearn-randomized": "scikit-learn `PCA`, randomized",
    "sklearn-covariance": "scikit-learn `PCA`, covariance_eigh",
    "sklearn-arpack": "scikit-learn `PCA`, arpack",
    "sklearn-incremental": "scikit-learn `IncrementalPCA`",
    "torch": "`torch.pca_lowrank`, 2 iterations",
    "torch-8": "`torch.pca_lowrank`, 8 iterations",
    "dask": "Dask `svd_compressed`",
    "lobpcg": "SciPy `lobpcg`",
    "block-krylov-4": "block Krylov, 4 passes",
    "block-krylov": "block Krylov, 6 passes",
    "nystrom-krylov": "block Krylov with a Nystrom finish, 4 passes",
}
"""Solvers in the table, with their names there."""
DATA = {
    "mnist": "MNIST, 60,000 x 784, 16 components",
    "tall-harmonic": "100,000 x 4,096 on disk, 32 components",
    "wide": "4,000 x 250,000 on disk, 32 components",
    "sparse": "20,000 x 50,000 sparse, 16 components",
}
"""Data sets in the table, with the headings of their columns."""

PAPER = {
    "eigengame": '"remembered" (`EigenGamePCA`)',
    "frequent-directions": '"frequent_directions"',
    "alpha": '"alpha"',
    "mu": '"mu"',
    "oja": '"oja"',
}
"""Algorithms of the package that were measured as peers, with their names in the table."""

Row = Mapping[str, Any]


def peers() -> str:
    """Return the table of solvers, and the sentence on date and machine."""
    rows = stored()
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
    return "\n".join(
        [
            *lines,
            "",
            circumstances(
                list(shown.values()),
                f"{WARM}, and memory beyond the data; bold: the fastest that finds all.",
            ),
        ]
    )


def fastest(rows: Sequence[Row]) -> float:
    """Return the shortest time of the solvers that find all components within pi/32."""
    return min(seconds(row) for row in rows if row["status"] == "ok" and complete(row))


def seconds(row: Row) -> float:
    """Return the time of the best warm run, or of the first one if there was no time for another."""
    return float(row.get("best_s") or row.get("cold_s") or 1e9)


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
    taken = f"{seconds(row):.2g} s"
    if seconds(row) == best and complete(row):
        taken = f"**{taken}**"
    return f"{taken}, {row['streak_32']}/{row['asked']}, {row['memory_mb']['own']:.0f} MB"


WARM = (
    "Seconds of a warm run (of the first one if a second took too long), leading components within π/32 of the "
    "exact ones"
)


def circumstances(rows: Sequence[Row], columns: str) -> str:
    """Return a sentence on the columns, machine, threads and date."""
    days = sorted({date.fromisoformat(row["date"][:10]) for row in rows})
    named = f"{days[0].day} {days[0]:%B %Y}"
    if days[-1] != days[0]:
        named += f" to {days[-1].day} {days[-1]:%B %Y}"
    machine = " and ".join(sorted({row["cpu"].replace("(R)", "") for row in rows}))
    threads = " or ".join(str(one) for one in sorted({row["threads"] for row in rows}))
    return f"{columns} {threads} threads of {machine}, float32, {named} (`benchmarks/results/peers.json`)."


def stored() -> list[Row]:
    """Return the stored results of all solvers."""
    return list(json.loads((RESULTS / "peers.json").read_text())["rows"])


def paper() -> str:
    """Return the table of the algorithms of the paper on the two data sets of 60,000 rows."""
    shown = {(row["data"], row["peer"]): row for row in stored() if row["scale"] == "full"}
    lines = ["| algorithm | passes | MNIST | spectrum 1/i |", "|---|---|---|---|"]
    for peer, name in PAPER.items():
        both = [shown[data, peer] for data in ("mnist", "harmonic")]
        cells = [f"{seconds(row):.2g} s, {row['streak_32']}/{row['asked']}" for row in both]
        lines.append(f"| {name} | {both[0]['passes']} | " + " | ".join(cells) + " |")
    used = [
        row
        for (data, peer), row in shown.items()
        if data in ("mnist", "harmonic") and peer in PAPER
    ]
    return "\n".join([*lines, "", circumstances(used, f"{WARM}.")])


def solvers() -> str:
    """Return a table of all solvers for each data set, the fastest first."""
    rows = [row for row in stored() if row["scale"] == "full"]
    parts = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        lines = [
            f"### {data}",
            "",
            "| peer | passes | warm s | cold s | max angle | pi/8 | pi/32 | own MB |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [measured(row) for row in sorted(own, key=seconds)]
        parts.append("\n".join([*lines, "", circumstances(own, "Measured with")]))
    return "\n\n".join(parts)


def measured(row: Row) -> str:
    """Return the line of one solver on one data set."""
    if row["status"] != "ok":
        return f"| {row['peer']} | - | {row['status']} | | | | | |"
    passes = "?" if row["passes"] is None else row["passes"]
    warm = "-" if row["best_s"] is None else f"{row['best_s']:.2f}"
    found = [f"{row[name]}/{row['asked']}" for name in ("streak_8", "streak_32")]
    return (
        f"| {row['peer']} | {passes} | {warm} | {row['cold_s']:.2f} | {row['max_angle']:.1e} | {found[0]} | "
        f"{found[1]} | {row['memory_mb']['own']:.0f} |"
    )


def defaults() -> str:
    """Return the table of fits without arguments, from ``first_try.md``."""
    lines = [line for line in (RESULTS / "first_try.md").read_text().splitlines() if "|" in line]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    at = {name: column for column, name in enumerate(cells[0])}
    table = [
        "| data | `EigenGamePCA(k)`: largest angle, CPU s | scikit-learn `PCA(k)`: largest angle, CPU s | routes |",
        "|---|---|---|---|",
    ]
    for row in cells[2:]:
        ours, theirs = row[at["CPU seconds, first / again"]], row[at["scikit-learn, first / again"]]
        angle, _, outside = (
            row[at["scikit-learn's largest angle (outside)"]].rstrip(")").partition(" (")
        )
        beyond = "" if outside == "0" else f" ({outside} components beyond 0.05)"
        outcome, _, solver = row[at["outcomes"]].partition("; ")
        route = outcome[outcome.index("(") + 1 : outcome.rindex(",")]
        first = [one.partition(" / ")[0] for one in (ours, theirs)]
        table.append(
            f"| {row[at['data']]} | {row[at['largest angle']]} rad, {first[0]} | {angle} rad{beyond}, {first[1]} "
            f"| {route}; {solver} |"
        )
    return "\n".join(table)


TABLES = {"peers": peers, "paper": paper, "defaults": defaults, "solvers": solvers}


def written() -> dict[Path, str]:
    """Return the pages that contain a table, with their up-to-date contents."""
    found = {}
    for page, names in PAGES.items():
        text = (ROOT / page).read_text()
        for name in names:
            pattern = re.compile(rf"(<!-- {name}: begin -->\n).*(\n<!-- {name}: end -->)", re.S)
            assert pattern.search(text), f"{page} has no markers of {name}"
            text = pattern.sub(lambda match, name=name: match[1] + TABLES[name]() + match[2], text)
        found[ROOT / page] = text
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
