"""Checks at the door: each error names the argument, the value it had, and the fix."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import jax
import numpy as np


def whole(name: str, value: Any, *, low: int = 1) -> int:
    """Return `value` as an int of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ValueError(f"{name}={value!r}: give a whole number of at least {low}.")
    return int(value)


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite float above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"{name}={value!r}: give a number above 0.")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value!r}: give a finite number above 0.")
    return float(value)


def fraction(name: str, value: Any, *, low: float = 0.0, high: float = 1.0) -> float:
    """Return `value` as a float in `[low, high)`."""
    if not isinstance(value, (int, float, np.number)) or not low <= value < high:
        raise ValueError(
            f"{name}={value!r}: give a number from {low:g} up to, not including, {high:g}."
        )
    return float(value)


def one_of(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r}: choose one of {listed}.")
    return str(value)


def step_size(name: str, value: Any) -> None:
    """Accept a step size: a number above zero, or a schedule from the step to one."""
    if not callable(value):
        positive(name, value)


def matrix(name: str, value: Any, *, rank: int = 2) -> None:
    """Accept an array of the given rank with no empty axis and no NaN or infinity.

    A traced array has a shape but no values yet: only its shape is checked.
    """
    shape = np.shape(value)
    if len(shape) != rank:
        axes = {2: "(rows, features)", 3: "(players, rows, features)"}.get(rank, f"{rank} axes")
        raise ValueError(
            f"{name} has shape {shape}: give an array of shape {axes}"
            + (", for example by reshape(1, -1) for one row." if len(shape) == 1 else ".")
        )
    if 0 in shape:
        raise ValueError(f"{name} has shape {shape}: give at least one row and one feature.")
    if not isinstance(value, jax.core.Tracer):
        finite(name, value)


def finite(name: str, value: Any) -> None:
    """Accept an array of finite numbers; say where the first bad one is."""
    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.number) and array.dtype != bool:
        # bfloat16 and its kin are numbers that NumPy does not know as such.
        try:
            array = array.astype(np.float32)
        except (TypeError, ValueError):
            raise ValueError(f"{name} has dtype {array.dtype}: give numbers.") from None
    if np.iscomplexobj(array):
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers.")
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{name}{list(where)} is {array[where]}: remove or fill NaN and infinite values first."
        )


def component_count(k: Any, d: int, *, name: str = "k") -> int:
    """Return the number of players if `1 <= k <= d`."""
    whole(name, k)
    if k > d:
        raise ValueError(
            f"{name}={k!r} is more than the {d} features: give a number from 1 to {d}."
        )
    return int(k)


def same_width(name: str, width: int, other: str, other_width: int) -> None:
    """Accept two arrays with the same number of features."""
    if width != other_width:
        raise ValueError(
            f"{name} has {width} features but {other} has {other_width}: "
            "give both the same number of columns."
        )
