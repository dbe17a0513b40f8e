"""The frame of a fit: the origin that is subtracted from rows while they are read, and their unit.

Neither changes the components. The origin preserves digits if the mean is far from zero. The unit, a power of two,
keeps the squares of very large or very small numbers within the range of the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from eigengame._system import interrupts
from eigengame.linalg.library import array_namespace
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sources import RandomAccess, Source
from eigengame.sources.device_array import DeviceArray

FAR = 30.0
"""Standard deviations from zero beyond which a mean is subtracted while rows are read."""

LARGE = 4.0
"""Square of the mean, divided by the variance, beyond which products in float32 are better about the mean."""

FAR_IN_HALF = 1.0
"""The same for rows that their source rounds to half precision after the subtraction."""

LEAST_SCATTER = {np.dtype(np.float32): 2.0**-100, np.dtype(np.float64): 2.0**-400}
"""Least sum of squares of the rows in their frame: rounding errors of it have squares that are not zero."""

UNSCALED = {np.dtype(np.float32): 16, np.dtype(np.float64): 100}
"""Numbers up to 2 to this power, and down to its inverse, need no unit.

Their fourth powers, summed over all rows, stay within the range of the dtype.
"""


@dataclass(frozen=True)
class Frame:
    """Origin and unit of rows: a row x becomes (x - origin) / unit.

    Attributes
    ----------
    origin : array of shape (d,) or None
        In float64; None subtracts nothing.
    unit : float
        A power of two, so dividing by it is exact.
    """

    origin: np.ndarray | None = None
    unit: float = 1.0

    @property
    def plain(self) -> bool:
        """Whether the frame changes nothing."""
        return self.origin is None and self.unit == 1

    def applied(self, values: np.ndarray, dtype: Any, columns: slice = slice(None)) -> np.ndarray:
        """Return rows (m, d) in this frame. The origin is subtracted in float64, and the result is rounded once.

        `columns` are the features of the values.
        """
        if self.origin is not None:
            # The origin of float32 data is exact in float32, so the subtraction rounds once.
            wide = np.float32 if values.dtype == dtype == np.float32 else np.float64
            values = np.subtract(values, self.origin[columns], dtype=wide)
        if self.unit != 1:
            values = np.divide(values, self.unit, dtype=np.result_type(values.dtype, dtype))
        return np.ascontiguousarray(values, dtype=dtype)

    def about(self, mean: np.ndarray) -> Frame:
        """Return the frame whose origin is a mean (d,), given in this frame."""
        origin = 0 if self.origin is None else self.origin
        return Frame(origin + self.unit * np.asarray(mean, np.float64), self.unit)

    def reordered(self, order: np.ndarray) -> Frame:
        """Return the frame with features in another order, given as indices (d,)."""
        return Frame(None if self.origin is None else self.origin[order], self.unit)

    def outer(self, mean: np.ndarray) -> np.ndarray:
        """Convert a mean (d,) from this frame to the units of the data."""
        origin = 0 if self.origin is None else self.origin
        return np.asarray(mean, np.float64) * self.unit + origin

    def moved(self, mean: np.ndarray, target: Frame) -> np.ndarray:
        """Convert a mean (d,) from this frame to another one.

        Origins are subtracted from each other first. The difference of close numbers is exact, while the mean in
        the units of the data loses as many digits as it is far from zero.
        """
        here, there = (0 if one.origin is None else one.origin for one in (self, target))
        step = (here - there) / target.unit
        return np.asarray(mean, np.float64) * (self.unit / target.unit) + step

    def inner(self, mean: np.ndarray) -> np.ndarray:
        """Convert a mean (d,) from the units of the data to this frame."""
        origin = 0 if self.origin is None else self.origin
        return (np.asarray(mean, np.float64) - origin) / self.unit


def in_range(variances: np.ndarray, unit: float) -> np.ndarray:
    """Return variances in the units of the data; raise ValueError if float64 cannot represent them."""
    with np.errstate(over="ignore", under="ignore"):
        found = variances * unit * unit
    largest = found.max(initial=0)
    # A variance below the normal numbers has few digits.
    few_digits = 0 < largest < np.finfo(np.float64).tiny
    if ((variances > 0) & (found == 0)).any() or not np.isfinite(found).all() or few_digits:
        raise _out_of_range(unit)
    return found


def refuse_too_small(name: str, scatter: np.ndarray) -> None:
    """Raise ValueError if the scatter (d,) of the features is so small that squares of its errors are zero.

    Data that can be read again is scaled by the unit of its frame, but weights and data that can be read once are
    not.
    """
    total = float(np.sum(scatter, dtype=np.float64))
    if 0 < total < LEAST_SCATTER[scatter.dtype]:
        raise ValueError(
            f"the sum of all squares of {name} is {total:.1g}, too small for {scatter.dtype}: multiply the data, "
            "or its weights if these are small, by a large number."
        )


def _out_of_range(unit: float) -> ValueError:
    return ValueError(
        f"the data has numbers of about {unit:.1g}, whose squares are beyond the range of float64: divide it by a "
        "number of that size."
    )


def frame_of(
    source: Source,
    dtype: Any,
    *,
    center: bool,
    weights: np.ndarray | None = None,
    columns: tuple[int, int] | None = None,
    of_all: Callable[[np.ndarray], np.ndarray] = lambda own: own,
) -> Frame:
    """Choose the frame from the first rows with a weight above 0.

    If rows are centred, the origin is the mean of the features whose mean is far from zero. Sparse rows have no
    origin, nor have bytes, whose squares float32 represents. Sources that can be read only once get the plain
    frame. If this process reads only some `columns`, `of_all` collects the numbers of all features.
    """
    if not source.again:
        return Frame()
    few = min(1024, max(16, 2 ** (18 if source.on_device else 21) // max(source.shape[1], 1)))
    whole = center and columns is None and weights is None
    array = source.data if whole and isinstance(source, DeviceArray) else None
    values: Any = first_rows(source, few, columns, weights) if array is None else array
    if values is None:
        return Frame()
    if source.sparse:
        return Frame(None, _unit(np.abs(values.data), dtype))
    if source.on_device and not center:
        # Only the largest number is needed: wide rows stay on the device.
        return Frame(None, _unit(np.asarray(float(jnp.abs(values).max())), dtype))
    small = source.dtype.kind in "ui" and source.dtype.itemsize == 1
    limit = FAR_IN_HALF if source.rounds else FAR
    # Rows on a device stay there: only a few numbers of each feature are transferred.
    if source.on_device:
        figures = _figures_there(values, not small, None if array is None else few)
    else:
        figures = _figures(np.asarray(values, np.float64), not small)
    low, high, mean, deviation = np.asarray(figures, np.float64)
    origin = None
    if center and not small:
        sizes = np.maximum(high, -low)
        found = (of_all(mean), of_all(deviation), of_all(sizes))
        # A subtraction takes time for each batch. Digits that the network rounded away do not come back.
        origin = _far_mean(*found, limit, together=source.shifts and not source.rounds)
    if origin is not None and source.shifts:
        # Differences of numbers of equal size are exact in half precision.
        origin = origin.astype(source.dtype).astype(np.float64)
    elif origin is not None and source.dtype.itemsize <= 4 and source.dtype.kind not in "ui":
        origin = origin.astype(np.float32).astype(np.float64)
    own = slice(*columns) if columns else slice(None)
    middle = 0 if origin is None else origin[own]
    sizes = of_all(np.maximum(high - middle, middle - low))
    if not sizes.any() and isinstance(source, RandomAccess):
        # All of the first rows are equal, and do not show the scale of the others.
        others = _rows_apart(source, columns, weights) - (0 if origin is None else origin[own])
        sizes = of_all(np.abs(others).max(axis=0))
    return Frame(origin, _unit(sizes, dtype))


def first_mean(source: Source, frame: Frame, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the mean (d,) of the first rows in a frame, a guess of the mean of all rows."""
    values = first_rows(source, 1024, weights=weights)
    if values is None:
        return np.zeros(source.shape[1])
    return frame.inner(np.asarray(values.mean(axis=0), np.float64).ravel())


def large_mean(
    source: Source, frame: Frame, weights: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the mean (d,) of the first rows in a frame if it is large beside their variance; else None.

    It is a number of float32 in the units of the data, so that its difference from such a number is rounded once.
    """
    count = min(1024, max(16, 2**20 // source.shape[1]))
    values = np.asarray(first_rows(source, count, weights=weights), np.float64)
    with np.errstate(all="ignore"):
        mean = values.mean(axis=0)
        inner = frame.inner(mean)
        spread = float(np.sum(np.var(values, axis=0))) / frame.unit**2
        if not np.isfinite(inner).all() or float(np.sum(inner**2)) <= LARGE * spread:
            return None
        return frame.inner(mean.astype(np.float32).astype(np.float64))


def _figures(values: Any, spread: bool, few: int | None = None) -> Any:
    """Return minimum, maximum, mean and standard deviation of each feature in the first rows, shape (4, d).

    The last two are divided by the largest absolute value of the feature, so that squares stay in range. They are
    0 unless `spread` is set.
    """
    xp: Any = array_namespace(values)
    block = values[:few].astype(xp.promote_types(values.dtype, np.float32), copy=False)
    low, high = block.min(axis=0), block.max(axis=0)
    if not spread:
        return xp.stack([low, high, xp.zeros_like(low), xp.zeros_like(low)])
    sizes = xp.maximum(high, -low)
    with np.errstate(all="ignore"):
        scaled = block / xp.where(sizes > 0, sizes, 1)[None, :]
        return xp.stack([low, high, scaled.mean(axis=0), scaled.std(axis=0)])


_figures_there = quick_jit(_figures, static_argnums=(1, 2))
"""`_figures` of rows on a device."""


def _far_mean(
    mean: np.ndarray,
    deviation: np.ndarray,
    sizes: np.ndarray,
    limit: float,
    *,
    together: bool = False,
) -> np.ndarray | None:
    """Return the means that are far from zero, and 0 for other features; None if there are none.

    `limit` is the number of standard deviations beyond which a mean is far; for the others see `_figures`. With
    `together`, the squares of all these means must also exceed the variance of all features by the square of it.
    """
    with np.errstate(all="ignore"):
        far = (np.abs(mean) > limit * deviation) & np.isfinite(mean)
        origin = np.where(far, mean * sizes, 0)
        spread = float(np.sum((deviation * sizes) ** 2))
        if together and float(np.sum(origin**2)) <= limit**2 * spread:
            return None
    return origin if far.any() else None


def _unit(sizes: np.ndarray, dtype: Any) -> float:
    """Return the power of two next to the largest size, or 1 if squares stay in range without it.

    Raise ValueError if float64 cannot represent its square: no variance could be stated.
    """
    largest = float(sizes.max(initial=0))
    if not (math.isfinite(largest) and largest > 0):
        return 1.0
    power = math.frexp(largest)[1]
    if not -1022 <= 2 * power < 1024:
        raise _out_of_range(largest)
    return 1.0 if abs(power) <= UNSCALED[np.dtype(dtype)] else math.ldexp(1.0, power)


def _rows_apart(
    source: RandomAccess, columns: tuple[int, int] | None, weights: np.ndarray | None
) -> np.ndarray:
    """Return some rows over the whole length of a source, of those with a weight above 0 if there are any."""
    n, d = source.shape
    assert n is not None
    counted = np.arange(n) if weights is None or not weights.any() else np.flatnonzero(weights)
    places = counted[np.unique(np.linspace(0, len(counted) - 1, 64).astype(int))]
    found = [source.read_columns(one, one + 1, *(columns or (0, d))) for one in places.tolist()]
    return np.concatenate([np.asarray(one, np.float64) for one in found])


def first_rows(
    source: Source,
    count: int,
    columns: tuple[int, int] | None = None,
    weights: np.ndarray | None = None,
) -> Any:
    """Return some of the first rows, or some columns of them; None if there are no rows.

    They are among the `count` rows from the first one with a weight above 0. Rows of weight 0 are left out: they
    may contain anything, such as a code for missing values.
    """
    start = 0 if weights is None else int(np.argmax(weights > 0))
    own = None
    if columns is not None and isinstance(source, RandomAccess) and source.shape[0] is not None:
        values = source.read_columns(start, min(start + count, source.shape[0]), *columns)
    else:
        block = next(interrupts.drawn(source.blocks(start, count)), None)
        if block is None:
            return None
        values, own = block.values, block.weights
        values = values if columns is None else values[:, slice(*columns)]
    counted = np.ones(values.shape[0], bool) if own is None else np.asarray(own) > 0
    if weights is not None:
        counted &= weights[start : start + len(counted)] > 0
    return values if counted.all() or not counted.any() else values[counted]
