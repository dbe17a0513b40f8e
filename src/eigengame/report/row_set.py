"""Rows of a report with their labels, ids and times."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame.estimator.inputs import is_other, with_columns_of_fit
from eigengame.report.arguments import ReportError
from eigengame.report.row_times import Times, check_times, index_times
from eigengame.sources import Source, as_source

MAX_ID_LENGTH = 60
"""Longer ids are shortened, so that they add at most this many characters per row to a page."""


@dataclass(frozen=True)
class RowSet:
    """Data for the scatter plot of scores, and what is known about each row.

    Attributes
    ----------
    data : any input of `transform_blocks`
    name : str, optional
        Name of the data in the legend.
    labels : array of shape (n,), optional
    label_name : object
        Name of the labels, or None.
    ids : array of shape (n,), optional
    times : Times, optional
    prefix : str
        Start of the names of the arguments in error messages.
    """

    data: Any
    name: str | None = None
    labels: np.ndarray | None = None
    label_name: Any = None
    ids: np.ndarray | None = None
    times: Times | None = None
    prefix: str = ""

    @property
    def rows(self) -> int | None:
        """Number of rows, if it is known before the data is read."""
        shape = getattr(self.data, "shape", None)
        if shape is not None:
            known: int | None = shape[0]
            if known is not None:
                return int(known)
        elif hasattr(self.data, "__len__"):
            return len(self.data)
        return next((len(values) for values in self._columns().values()), None)

    def check_lengths(self, rows: int) -> None:
        """Raise an error if labels, ids or times do not have one entry per row."""
        for name, values in self._columns().items():
            if len(values) != rows:
                raise ReportError(
                    f"{name} has {len(values)} entries, but {self.prefix.rstrip('_') or 'data'} has {rows} rows: "
                    "give one per row."
                )

    def _columns(self) -> dict[str, Any]:
        """Return what was given for each row, by the name of the argument."""
        times = None if self.times is None else self.times.values
        given = {"labels": self.labels, f"{self.prefix}ids": self.ids, "time": times}
        return {name: values for name, values in given.items() if values is not None}


def open_row_set(
    model: Any,
    data: Any,
    *,
    labels: Any = None,
    ids: Any = None,
    time: Any = None,
    name: str | None = None,
    prefix: str = "",
) -> RowSet:
    """Return the rows of some data, with ids and times of the data itself where none are given.

    Ids are those that a source knows (`Source.row_ids`), or the index of a data frame. Times are the index of a
    data frame, if it contains times.
    """
    index = getattr(data, "index", None)
    times = index_times(index) if time is None else check_times(time)
    indexed = times is None or time is not None
    if data is not None and is_other(data):
        data = as_source(with_columns_of_fit(model, data))
    if times is None and isinstance(data, Source) and data.grid is not None:
        times = _sample_times(data)
    if ids is None and isinstance(data, Source):
        ids = data.row_ids()
        if ids is not None and data.shape[0] is not None and len(ids) != data.shape[0]:
            ids = None  # not given, and not usable
    if ids is None and indexed and index is not None and not _is_count(index):
        ids = index
    return RowSet(
        data=data,
        name=name or _name_of(data),
        labels=check_per_row("labels", labels),
        label_name=getattr(labels, "name", None),
        ids=check_per_row(f"{prefix}ids", ids),
        times=times,
        prefix=prefix,
    )


def _sample_times(source: Source) -> Times | None:
    """Return the times of the samples of a field; None if they are not dates that a calendar has."""
    columns = source.id_columns()
    if len(columns) != 1:
        return None
    with contextlib.suppress(ReportError):
        (labels,) = columns.values()
        return check_times(list(labels))._replace(name=next(iter(columns)))
    return None


def check_per_row(name: str, values: Any) -> np.ndarray | None:
    """Return one value per row, shape (n,)."""
    if values is None:
        return None
    one = name.removeprefix("overlay_").rstrip("s")
    if isinstance(values, str):
        raise ReportError(f"{name}={values!r} is a single string: give one {one} per row of data.")
    array = np.asarray(values)
    if array.ndim != 1:
        raise ReportError(f"{name} has shape {array.shape}: give one {one} per row, shape (rows,).")
    return array


def encode_ids(ids: np.ndarray) -> list[str]:
    """Return ids as texts of bounded length; an empty text for a missing id."""
    texts = ("" if one is None or one != one else str(one) for one in ids.tolist())
    return [
        text if len(text) <= MAX_ID_LENGTH else f"{text[: MAX_ID_LENGTH - 1]}…" for text in texts
    ]


def _is_count(index: Any) -> bool:
    """Return whether an index only counts the rows from 0, or is the method of a list."""
    if callable(index):
        return True
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _name_of(data: Any) -> str | None:
    """Return the last part of the name of a source, if it has one."""
    name = getattr(data, "name", None)
    if not isinstance(name, str) or name in ("", "X"):
        return None
    return name.rstrip("/").rsplit("/", 1)[-1]
