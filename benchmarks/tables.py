"""Results as plain text: one table for each data set, one line for each peer."""

from __future__ import annotations

from typing import Any

HEADINGS = (
    ("peer", 22),
    ("passes", 7),
    ("warm s", 9),
    ("cold s", 9),
    ("max angle", 10),
    ("pi/8", 7),
    ("pi/32", 7),
    ("own MB", 8),
    ("peak MB", 8),
    ("gemm", 6),
)


def table(title: str, rows: list[dict[str, Any]]) -> str:
    """Return a table: peers sorted by time, those without a result last."""
    lines = [title, line([name for name, _ in HEADINGS]) + "  remarks"]
    ordered = sorted(rows, key=lambda row: row.get("best_s") or row.get("cold_s") or float("inf"))
    return "\n".join(lines + [formatted(row) for row in ordered])


def formatted(row: dict[str, Any]) -> str:
    """Return the line of one peer."""
    if row["status"] != "ok":
        return f"{line([row['peer']]).rstrip()}  {row['status']}"
    cells = [
        row["peer"],
        "?" if row["passes"] is None else str(row["passes"]),
        "-" if row["best_s"] is None else f"{row['best_s']:.3f}",
        f"{row['cold_s']:.3f}",
        f"{row['max_angle']:.1e}",
        f"{row['streak_8']}/{row['asked']}",
        f"{row['streak_32']}/{row['asked']}",
        f"{row['memory_mb']['own']:.0f}",
        f"{row['memory_mb']['peak_over_import']:.0f}",
        f"{row['gemm_share']:.0%}" if row.get("gemm_share") else "-",
    ]
    return f"{line(cells)}  {row['note']}".rstrip()


def line(cells: list[str]) -> str:
    """Return cells in columns: the first aligned left, numbers aligned right."""
    widths = [width for _, width in HEADINGS]
    first = cells[0].ljust(widths[0])
    return first + "".join(
        f" {cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=False)
    )
