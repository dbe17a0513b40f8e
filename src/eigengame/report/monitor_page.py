"""A page with the charts of T2 and SPE against the rows, their limits, and the rows with the largest alarms.

The page has the style sheet of the report and no scripts: charts are SVG that is drawn here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eigengame._system.atomic_write import atomic_write
from eigengame.monitoring import ControlLimits
from eigengame.report.arguments import check_path
from eigengame.report.page import read_asset

WIDTH, HEIGHT, LEFT, BOTTOM = 1100, 240, 70, 24
"""Size of a chart and of its margins, in units of the drawing."""

BINS = 1000
"""With more rows, each bin shows the range of its rows."""

MAX_MARKS = 2000
"""Largest number of marked alarms of a chart: the largest ones."""

STYLE = (
    ".chart{width:100%;height:auto}.span{fill:var(--accent);stroke:var(--accent);stroke-width:1}"
)
"""Style of the charts, in addition to that of the report."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
<header class="page-head"><p class="eyebrow">EigenGame monitoring</p><h1>{title}</h1>
<p class="summary">{summary}</p></header>
<main>
{main}
</main>
<footer>Written by eigengame. This file is self-contained and loads nothing from the network.</footer>
</body>
</html>
"""


class AlarmRow(NamedTuple):
    """A row with an alarm, for the table.

    Attributes
    ----------
    name : str
        Id or number of the row.
    t2, spe : float
    features : str
        Features that contribute most.
    """

    name: str
    t2: float
    spe: float
    features: str


def write_monitor_page(
    path: Any,
    t2: np.ndarray,
    spe: np.ndarray,
    limits: ControlLimits,
    *,
    worst: Sequence[AlarmRow] = (),
    notes: Sequence[str] = (),
    title: str = "Monitoring",
) -> Path:
    """Write a page and return its path.

    Parameters
    ----------
    path : path
        File to write; ends in `.html`. An existing file is replaced atomically.
    t2, spe : arrays of shape (n,)
        Statistics of the rows. NaN is left out.
    limits : ControlLimits
    worst : sequence of AlarmRow
        Rows of the table.
    notes : sequence of str
        Sentences under the title.
    title : str
    """
    target = check_path(path)
    above = (t2 > limits.t2) | (spe > limits.spe)
    summary = (
        f"{len(t2):,} rows, {int(above.sum()):,} with an alarm. Limits at {limits.confidence:.4g}: "
        f"{limits.explained}. {' '.join(notes)}"
    )
    parts = [
        _figure("T2: distance from the mean within the components", t2, limits.t2),
        _figure("SPE: squared distance from the components", spe, limits.spe),
        _table(worst),
    ]
    page = PAGE.format(
        title=html.escape(title),
        style=read_asset("page.css") + STYLE,
        summary=html.escape(summary),
        main="\n".join(parts),
    )
    with atomic_write(target) as draft:
        draft.write_text(page, encoding="utf-8")
    return target


def _figure(name: str, values: np.ndarray, limit: float) -> str:
    """Return a chart with a logarithmic axis, its limit as a dashed line, and marks of the alarms."""
    known = values[np.isfinite(values) & (values > 0)]
    alarms = np.flatnonzero(values > limit)
    note = f"{len(alarms):,} rows above the limit of {limit:.4g}."
    if not len(known):
        return (
            f'<section class="card"><h3>{name}</h3><p class="note">No values above 0.</p></section>'
        )
    low = math.log10(min(float(known.min()), limit or math.inf) / 1.2)
    high = math.log10(max(float(known.max()), limit) * 1.2)

    def y(value: Any) -> Any:
        logs = np.log10(np.maximum(value, 10.0**low))
        return np.round((HEIGHT - BOTTOM) * (high - logs) / (high - low), 1)

    def x(row: Any) -> Any:
        return np.round(LEFT + (WIDTH - LEFT - 8) * (row + 0.5) / len(values), 1)

    drawn = [_axes(len(values), low, high, y, x), _series(values, y, x)]
    if limit > 0:
        drawn.append(
            f'<line class="reference" x1="{LEFT}" x2="{WIDTH}" y1="{y(limit)}" y2="{y(limit)}"/>'
        )
    if len(alarms) > MAX_MARKS:
        alarms = alarms[np.argsort(-values[alarms], kind="stable")[:MAX_MARKS]]
    drawn += [
        f'<circle class="mark unsure" r="2" cx="{x(row)}" cy="{y(values[row])}"><title>row {row}: '
        f"{values[row]:.4g}</title></circle>"
        for row in alarms.tolist()
    ]
    return (
        f'<section class="card"><h3>{name}</h3><p class="note">{note}</p><svg class="chart" role="img" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" aria-label="{name}: {note}">{"".join(drawn)}</svg></section>'
    )


def _axes(rows: int, low: float, high: float, y: Any, x: Any) -> str:
    """Return lines and labels at powers of ten, and row numbers."""
    exponents = range(math.ceil(low), math.floor(high) + 1)
    step = max(1, len(exponents) // 5)
    ticks = [10.0**one for one in exponents[::step]] or [10.0 ** ((low + high) / 2)]
    lines = [
        f'<line class="rule" x1="{LEFT}" x2="{WIDTH}" y1="{y(tick)}" y2="{y(tick)}"/>'
        f'<text class="axis" x="{LEFT - 8}" y="{y(tick) + 4}" text-anchor="end">{tick:.3g}</text>'
        for tick in ticks
    ]
    for share in np.linspace(0, 1, 6):
        row = round(share * (rows - 1))
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        lines.append(
            f'<text class="axis" x="{x(row)}" y="{HEIGHT - 6}" text-anchor="{anchor}">{row:,}</text>'
        )
    return "".join(lines)


def _series(values: np.ndarray, y: Any, x: Any) -> str:
    """Return a line through the values; of many rows, the range of each bin."""
    if len(values) <= BINS:
        known = np.flatnonzero(np.isfinite(values))
        points = " ".join(
            f"{a},{b}" for a, b in zip(x(known).tolist(), y(values[known]).tolist(), strict=True)
        )
        return f'<polyline class="line" points="{points}"/>'
    edges = np.linspace(0, len(values), BINS + 1).astype(int)
    high, low = np.nan_to_num(values, nan=-np.inf), np.nan_to_num(values, nan=np.inf)
    tops, bottoms = np.maximum.reduceat(high, edges[:-1]), np.minimum.reduceat(low, edges[:-1])
    known = np.flatnonzero(np.isfinite(tops))
    path = " ".join(
        f"M{a} {t}V{max(b, t + 1)}"
        for a, t, b in zip(
            x(edges[known]).tolist(),
            y(tops[known]).tolist(),
            y(bottoms[known]).tolist(),
            strict=True,
        )
    )
    return f'<path class="span" d="{path}"/>'


def _table(worst: Sequence[AlarmRow]) -> str:
    """Return the table of the rows with the largest alarms; nothing if there are none."""
    if not worst:
        return ""
    lines = "".join(
        f'<tr><td>{html.escape(one.name)}</td><td>{one.t2:.4g}</td><td>{one.spe:.4g}</td><td class="reason">'
        f"{html.escape(one.features)}</td></tr>"
        for one in worst
    )
    return (
        '<section><h2>Rows with the largest alarms</h2><div class="card table-card"><table><thead><tr><th>row</th>'
        '<th>T2</th><th>SPE</th><th class="reason">features that contribute most</th></tr></thead><tbody>'
        f"{lines}</tbody></table></div></section>"
    )
