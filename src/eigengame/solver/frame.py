"""The frame of a fit: what is subtracted from rows as they are read, and the unit they are divided by.

Neither changes the components. The origin keeps digits where the mean is far from zero; the unit, a power of two,
keeps squares of very large or very small numbers within the range of the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame.sources import RandomAccess, Source

FAR = 30.0
"""Standard deviations beyond which a mean is subtracted as rows are read."""

UNSCALED = {np.dtype(np.float32): 16, np.dtype(np.float64): 100}
"""Numbers up to 2 to this power, and down to its inverse, are left as they are.

Fourth powers are formed on the way, and sums of them over all rows.
"""


@dataclass(frozen=True)
class Frame:
    """Where rows are measured from, and in which unit: a row x becomes (x - origin) / unit.

    Attributes
    ----------
    origin : array of shape (d,) or None
        In float64; None subtracts nothing.
    unit : float
        A power of two, so dividing by it rounds nothing.
    """

    origin: np.ndarray | None = None
    unit: float = 1.0

    @property
    def plain(self) -> bool:
        """Whether rows stay as they are."""
        return self.origin is None and self.unit == 1

    def applied(self, values: np.ndarray, dtype: Any, columns: slice = slice(None)) -> np.ndarray:
        """Return rows (m, d) in this frame: subtracted in float64 where there is an origin, then rounded once.

        `columns` are those of the origin that the values have.
        """
        if self.origin is not None:
            # An origin that float32 holds exactly is subtracted from float32 rows with a single rounding.
            wide = np.float32 if values.dtype == dtype == np.float32 else np.float64
            values = np.subtract(values, self.origin[columns], dtype=wide)
        if self.unit != 1:
            values = np.divide(values, self.unit, dtype=np.result_type(values.dtype, dtype))
        return np.ascontiguousarray(values, dtype=dtype)

    def about(self, mean: np.ndarray) -> Frame:
        """Return the frame whose origin is a mean (d,) that is given in this one."""
        origin = 0 if self.origin is None else self.origin
        return Frame(origin + self.unit * np.asarray(mean, np.float64), self.unit)

    def reordered(self, order: np.ndarray) -> Frame:
        """Return the frame of the same rows with their features in another order, given as indices (d,)."""
        return Frame(None if self.origin is None else self.origin[order], self.unit)

    def outer(self, mean: np.ndarray) -> np.ndarray:
        """Return a mean (d,) of this frame as the mean of the rows as given."""
        origin = 0 if self.origin is None else self.origin
        return np.asarray(mean, np.float64) * self.unit + origin

    def inner(self, mean: np.ndarray) -> np.ndarray:
        """Return a mean (d,) of the rows as given as the mean in this frame."""
        origin = 0 if self.origin is None else self.origin
        return (np.asarray(mean, np.float64) - origin) / self.unit


def in_range(variances: np.ndarray, unit: float) -> np.ndarray:
    """Return variances in units squared as plain numbers; refuse those that float64 cannot hold."""
    with np.errstate(over="ignore", under="ignore"):
        found = variances * unit * unit
    if ((variances > 0) & (found == 0)).any() or not np.isfinite(found).all():
        raise ValueError(
            f"the data has numbers of about {unit:.1g}, whose squares are beyond the range of float64: "
            "divide it by a number of that size."
        )
    return found


def frame_of(
    source: Source,
    dtype: Any,
    *,
    center: bool,
    columns: tuple[int, int] | None = None,
    of_all: Callable[[np.ndarray], np.ndarray] = lambda own: own,
) -> Frame:
    """Return the frame that the first rows call for.

    The origin is the mean of those features whose mean is far from zero, if rows are centred. Sparse rows have
    none, nor have bytes, whose squares float32 holds. Sources on a device, and sources that can be read only once,
    are left as they are. Where only some `columns` are read here, `of_all` makes numbers of all features from those
    of the columns.
    """
    if source.on_device or not source.again:
        return Frame()
    few = min(1024, max(16, 2**22 // max(source.shape[1], 1)))
    values = first_rows(source, few, columns)
    if values is None:
        return Frame()
    if source.sparse:
        return Frame(None, _unit(np.abs(values.data), dtype))
    block = np.asarray(values, np.float64)
    small = source.dtype.kind in "ui" and source.dtype.itemsize == 1
    origin = _far_mean(block, of_all) if center and not small else None
    if origin is not None and source.dtype == np.float32:
        origin = origin.astype(np.float32).astype(np.float64)
    away = block if origin is None else block - origin[slice(*columns) if columns else slice(None)]
    return Frame(origin, _unit(of_all(np.abs(away).max(axis=0)), dtype))


def first_mean(source: Source, frame: Frame) -> np.ndarray:
    """Return the mean (d,) of the first rows in a frame: a guess of that of all."""
    values = first_rows(source, 1024)
    if values is None:
        return np.zeros(source.shape[1])
    return frame.inner(np.asarray(values.mean(axis=0), np.float64).ravel())


def _far_mean(block: np.ndarray, of_all: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
    """Return the mean of each feature where it is far from zero, and 0 where it is not; None where none is."""
    with np.errstate(all="ignore"):
        # In units of the largest number of each feature: squares stay in range.
        largest = np.abs(block).max(axis=0)
        scaled = block / np.where(largest > 0, largest, 1)
        mean, deviation = of_all(scaled.mean(axis=0)), of_all(scaled.std(axis=0))
        far = (np.abs(mean) > FAR * deviation) & np.isfinite(mean)
        origin = np.where(far, mean * of_all(largest), 0)
    return origin if far.any() else None


def _unit(sizes: np.ndarray, dtype: Any) -> float:
    """Return the power of two next to the largest of some sizes, or 1 where squares stay in range without."""
    largest = float(sizes.max(initial=0))
    if not (math.isfinite(largest) and largest > 0):
        return 1.0
    power = math.frexp(largest)[1]
    return 1.0 if abs(power) <= UNSCALED[np.dtype(dtype)] else math.ldexp(1.0, power)


def first_rows(source: Source, count: int, columns: tuple[int, int] | None = None) -> Any:
    """Return at most `count` of the first rows, or some columns of them; None where there are no rows."""
    if columns is not None and isinstance(source, RandomAccess) and source.shape[0] is not None:
        return source.read_columns(0, min(count, source.shape[0]), *columns)
    block = next(iter(source.blocks(0, count)), None)
    if block is None:
        return None
    return block.values if columns is None else block.values[:, slice(*columns)]
