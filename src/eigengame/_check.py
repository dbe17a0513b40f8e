"""Argument checks: each error names the argument, its value, and the fix."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse


def whole(name: str, value: Any, *, low: int = 1) -> int:
    """Return `value` as an int of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ValueError(f"{name}={value!r}: give a whole number of at least {low}.")
    return int(value)


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite positive float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"{name}={value!r}: give a number above 0.")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value!r}: give a finite number above 0.")
    return float(value)


def fraction(name: str, value: Any) -> float:
    """Return `value` as a float in [0, 1)."""
    if not isinstance(value, (int, float, np.number)) or not 0 <= value < 1:
        raise ValueError(f"{name}={value!r}: give a number from 0 to 1, without 1 itself.")
    return float(value)


def one_of(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r}: choose one of {listed}.")
    return str(value)


def step_size(name: str, value: Any) -> None:
    """Check a step size: a positive number, or a schedule (a function of the step)."""
    if not callable(value):
        positive(name, value)


def seed(name: str, value: Any) -> int:
    """Return `value` as the seed of a random key."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integer or not 0 <= value < 2**32:
        raise ValueError(f"{name}={value!r}: give a whole number from 0 to 2**32 - 1.")
    return int(value)


def optimizer(name: str, value: Any) -> None:
    """Check an optional optax gradient transformation: an object with `init` and `update`."""
    if value is not None and not (
        callable(getattr(value, "init", None)) and callable(getattr(value, "update", None))
    ):
        raise ValueError(
            f"{name}={value!r}: give an optax optimiser, for example optax.adam(0.01)."
        )


def matrix(name: str, value: Any, *, rank: int | tuple[int, ...] = 2) -> np.ndarray | jax.Array:
    """Return `value` as an array of the given rank, without empty axes, NaN or infinity.

    Only the shape of a traced array is checked, because it has no values.
    """
    array = shaped(name, value, rank=rank)
    finite(name, array)
    return array


def shaped(name: str, value: Any, *, rank: int | tuple[int, ...] = 2) -> np.ndarray | jax.Array:
    """Return `value` as an array of real numbers of one of the ranks, without empty axes."""
    array = numbers(name, value)
    ranks = (rank,) if isinstance(rank, int) else rank
    shape = array.shape
    if len(shape) not in ranks:
        known = {1: "(values,)", 2: "(rows, features)", 3: "(players, rows, features)"}
        axes = " or ".join(known[one] for one in ranks)
        one_row = len(shape) == 1 and 2 in ranks
        raise ValueError(
            f"{name} has shape {shape}: give an array of shape {axes}"
            + (", for example with reshape(1, -1) for one row." if one_row else ".")
        )
    if 0 in shape:
        raise ValueError(f"{name} has shape {shape}: give at least one row and one feature.")
    return array


def numbers(name: str, value: Any) -> np.ndarray | jax.Array:
    """Return `value` as an array of real numbers, without a copy if it is one."""
    if isinstance(value, jax.Array):
        array: Any = value
    elif scipy.sparse.issparse(value):
        raise ValueError(
            f"{name} is a SciPy sparse {value.format} matrix: fit it with EigenGamePCA, "
            f"or give {name}.toarray()."
        )
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}; give rows of one length.") from None
    if array.dtype == object:
        # Decimals, fractions and large Python integers are objects for NumPy.
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} has dtype object: give numbers.") from None
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers.")
    real = any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))
    # NumPy counts timedelta as an integer.
    if not real or array.dtype.kind == "m":
        raise ValueError(
            f"{name} has dtype {array.dtype}: give numbers, for example with astype(float)."
        )
    return array


Places = Sequence[int] | np.ndarray | None
"""Row numbers of an array within a larger one, for messages; None if the array is complete."""


def finite(name: str, array: np.ndarray | jax.Array, *, places: Places = None) -> None:
    """Raise ValueError with the index of the first NaN or infinity, if there is one.

    The array stays on its device; it is copied to the host only for the error message.
    """
    if isinstance(array, jax.core.Tracer) or not jnp.issubdtype(array.dtype, jnp.floating):
        return
    good = jnp.isfinite(array) if isinstance(array, jax.Array) else np.isfinite(array)
    if not good.all():
        where, value = _first_bad(good, array, places)
        raise ValueError(_not_finite(name, where, value))


def finite_entries(name: str, rows: Any, *, first: int = 0) -> None:
    """Raise ValueError with the index of the first stored NaN or infinity of CSR rows that begin at row `first`."""
    good = np.isfinite(rows.data)
    if not good.all():
        entry = int(np.argmin(good))
        row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        where = [first + row, int(rows.indices[entry])]
        raise ValueError(_not_finite(name, where, rows.data[entry]))


def _not_finite(name: str, where: list[int], value: Any) -> str:
    """Return the message for a value that is not finite."""
    if np.isnan(value):
        return (
            f"{name}{where} is nan, a missing value: remove it, or fit prepare(data, missing='mean') or "
            "missing='skip' (eigengame fit --missing mean or skip), which fills NaN or skips the row, "
            "also in new data."
        )
    return (
        f"{name}{where} is {value}: infinite values are not missing values; remove or replace them."
    )


def fits(
    name: str, array: np.ndarray | jax.Array, converted: jax.Array, *, places: Places = None
) -> None:
    """Raise ValueError if a number became infinite in the conversion to another dtype."""
    if isinstance(converted, jax.core.Tracer) or converted.dtype == array.dtype:
        return
    good = jnp.isfinite(converted)
    if not good.all():
        where, value = _first_bad(good, array, places)
        raise ValueError(
            f"{name}{where} is {value}, which is out of range for {converted.dtype}: divide the data by its "
            'largest value, or compute in float64 with jax.config.update("jax_enable_x64", True).'
        )


def _first_bad(good: Any, array: Any, places: Places) -> tuple[list[int], Any]:
    """Return the index of the first value that is not good, and the value."""
    where = [int(i) for i in np.argwhere(~np.asarray(good))[0]]
    value = array[tuple(where)]
    if places is not None:
        where[0] = int(places[where[0]])
    return where, value


def spectrum(name: str, value: Any, *, at_least: int = 1) -> np.ndarray:
    """Return at least `at_least` eigenvalues in descending order, as float64."""
    array = numbers(name, value)
    if array.ndim != 1 or array.size < at_least:
        needed = "" if at_least == 1 else f", at least {at_least}: one more than players"
        raise ValueError(f"{name} has shape {array.shape}: give a list of eigenvalues{needed}.")
    values = np.asarray(array, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all() and (np.diff(values) <= 0).all()):
        raise ValueError(f"{name}={values}: give finite values >= 0, largest first.")
    return values


def component_count(k: Any, d: int, *, name: str = "k") -> int:
    """Return `k` as an int between 1 and the number of features `d`."""
    whole(name, k)
    if k > d:
        raise ValueError(
            f"{name}={k!r} is more than the {d} features: give a number from 1 to {d}."
        )
    return int(k)


def same_width(name: str, width: int, other: str, other_width: int) -> None:
    """Raise ValueError if two arrays differ in their number of features."""
    if width != other_width:
        raise ValueError(
            f"{name} has {width} features but {other} has {other_width}: "
            "give both the same number of columns."
        )
