"""Statistics of all rows to a text file, and the rows with the largest alarms."""

from __future__ import annotations

import contextlib
import csv
import heapq
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eigengame._system import interrupts
from eigengame._system.atomic_write import atomic_write
from eigengame.monitoring import Monitoring
from eigengame.report.monitor_page import AlarmRow

MAX_SHOWN = 20
"""Rows with the largest alarms that are shown."""

Ids = Mapping[str, Sequence[str]]


class MonitoredRows(NamedTuple):
    """Statistics of all rows.

    Attributes
    ----------
    t2, spe : arrays of shape (n,)
    worst : list of AlarmRow
        Rows with the largest alarms, in the order of the data.
    notes : list of str
    angles : array of shape (k,) or None
    subspace_angle : float or None
    """

    t2: np.ndarray
    spe: np.ndarray
    worst: list[AlarmRow]
    notes: list[str]
    angles: np.ndarray | None
    subspace_angle: float | None


def monitor_rows(
    blocks: Iterator[Monitoring], ids: Ids, path: Path | None, top: int
) -> MonitoredRows:
    """Write the statistics block by block, and return them without the contributions.

    Parameters
    ----------
    blocks : iterator of Monitoring
        With limits. Only one block is in memory at a time.
    ids : mapping of str to sequence of str
        Columns that identify the rows, which precede the statistics.
    path : path, optional
        File to write, `.csv` or `.tsv`. It appears when it is complete.
    top : int
        Features to name for each alarm.
    """
    t2: list[np.ndarray] = []
    spe: list[np.ndarray] = []
    largest: list[tuple[float, int, AlarmRow]] = []
    skipped, last = 0, None
    with contextlib.ExitStack() as stack:
        lines = None if path is None else _writer(stack, path, ids)
        begin = 0
        for block in blocks:
            interrupts.check()
            for i in np.flatnonzero(block.alarms).tolist():
                _keep(largest, block, i, begin + i, ids, top)
            if lines is not None:
                lines.writerows(_rows(block, begin, ids, top))
            t2.append(block.t2)
            spe.append(block.spe)
            skipped += int(np.isnan(block.t2).sum())
            begin, last = begin + len(block), block
    assert last is not None
    notes = [note for note in last.notes() if "skipped" not in note]
    if skipped:
        notes.insert(0, f"{skipped:,} rows were skipped by the preparation and have no statistics.")
    worst = [one for _, _, one in sorted(largest, key=lambda item: -item[1])]
    return MonitoredRows(
        np.concatenate(t2), np.concatenate(spe), worst, notes, last.angles, last.subspace_angle
    )


def _writer(stack: contextlib.ExitStack, path: Path, ids: Ids) -> Any:
    """Return a writer of lines, after the header."""
    draft = stack.enter_context(atomic_write(path))
    file = stack.enter_context(draft.open("w", newline="", encoding="utf-8"))
    lines = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n")
    statistics = ["t2", "spe", "t2_alarm", "spe_alarm", "t2_features", "spe_features"]
    lines.writerow([*(ids or ["row"]), *statistics])
    return lines


def _rows(block: Monitoring, begin: int, ids: Ids, top: int) -> Iterator[list[Any]]:
    """Yield the fields of each row; features are named for alarms only."""
    alarms: dict[Any, np.ndarray] = {"t2": block.t2_alarms, "spe": block.spe_alarms}
    for i in range(len(block)):
        own: list[Any] = [values[begin + i] for values in ids.values()] or [begin + i]
        named = [_features(block, i, name, top) if alarms[name][i] else "" for name in alarms]
        flags = [int(one[i]) for one in alarms.values()]
        yield [*own, f"{block.t2[i]:.9g}", f"{block.spe[i]:.9g}", *flags, *named]


def _keep(
    largest: list[tuple[float, int, AlarmRow]],
    block: Monitoring,
    i: int,
    row: int,
    ids: Ids,
    top: int,
) -> None:
    """Add a row to the heap of the largest alarms, if it belongs there. Of equal alarms the first row is kept."""
    limits = block.limits
    assert limits is not None
    size = max(_ratio(block.t2[i], limits.t2), _ratio(block.spe[i], limits.spe))
    if len(largest) == MAX_SHOWN and (size, -row) <= largest[0][:2]:
        return
    name = " ".join(values[row] for values in ids.values()) or f"{row}"
    shown = AlarmRow(name, float(block.t2[i]), float(block.spe[i]), _features(block, i, None, top))
    push = heapq.heappushpop if len(largest) == MAX_SHOWN else heapq.heappush
    push(largest, (size, -row, shown))


def _ratio(value: float, limit: float) -> float:
    return float(value / limit) if limit > 0 else float(value > 0)


def _features(block: Monitoring, i: int, statistic: Any, top: int) -> str:
    """Return the features that contribute most, with their shares."""
    found = block.top_features(i, statistic, top)
    return "; ".join(f"{name} {share:.0%}" for name, share in found)
