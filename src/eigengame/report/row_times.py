"""Times of rows: dates, or numbers such as years."""

from __future__ import annotations

import datetime
import math
from typing import Any, NamedTuple

import numpy as np

from eigengame.report.arguments import ReportError


class Times(NamedTuple):
    """The time of each row.

    Attributes
    ----------
    values : array of shape (n,)
        Milliseconds since 1970 (UTC) for dates, else numbers; NaN where a time is missing.
    dates : bool
    name : str
    """

    values: np.ndarray
    dates: bool
    name: str

    def encoded(self, chosen: np.ndarray) -> dict[str, Any]:
        """Return the times of the chosen rows for the page."""
        values = [
            None if not math.isfinite(value) else int(value) if value.is_integer() else value
            for value in self.values[chosen].tolist()
        ]
        return {"name": self.name, "dates": self.dates, "values": values}


def check_times(time: Any) -> Times:
    """Return times from dates, ISO 8601 texts or numbers, one per row."""
    if isinstance(time, str):
        raise ReportError(f"time={time!r} is a single string: give one time per row of data.")
    name = getattr(time, "name", None)
    array = np.asarray(time)
    if array.ndim != 1:
        raise ReportError(f"time has shape {array.shape}: give one time per row, shape (rows,).")
    dates = array.dtype.kind not in "iuf"
    values = _milliseconds(array) if dates else array.astype(np.float64)
    return Times(values, dates, "time" if name is None else str(name))


def index_times(index: Any) -> Times | None:
    """Return the times of the index of a data frame, or None if it does not contain times."""
    if type(index).__name__ not in ("DatetimeIndex", "PeriodIndex"):
        return None
    return check_times(index)


def _milliseconds(array: np.ndarray) -> np.ndarray:
    """Return dates as milliseconds since 1970 (UTC)."""
    if array.dtype.kind != "M":
        array = np.array([_date(value) for value in array.tolist()], dtype="datetime64[ms]")
    whole = array.astype("datetime64[ms]")
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64).astype(np.float64))


def _date(value: Any) -> np.datetime64:
    """Return one date as a NumPy date in UTC."""
    if hasattr(value, "to_timestamp"):  # a period of pandas
        value = value.to_timestamp()
    if value is None or value != value or value == "":
        return np.datetime64("NaT", "ms")
    try:
        if isinstance(value, str):
            text = value.strip()
            # NumPy knows years and months, Python knows time zones.
            value = np.datetime64(text) if len(text) < 10 else datetime.datetime.fromisoformat(text)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return np.datetime64(value, "ms")
    except (TypeError, ValueError):
        raise ReportError(
            f"time has the value {value!r}: give dates, numbers, or texts in ISO 8601 such as 2024-03-01 or "
            "2024-03-01T12:00."
        ) from None
