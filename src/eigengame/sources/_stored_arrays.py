"""Arrays in files: shapes of rows and images, byte order, and the choice among several arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._file_source import FileSource

NUMBERS = "fiub"
"""Kinds of dtype that are read: floats, integers, bools."""

BOUNDS = ("_bnds", "_bounds")
"""Endings of variables with the bounds of grid cells (CF conventions), which are not data."""

MAX_LISTED = 12
"""Number of arrays that a message lists."""


class ArrayInfo(NamedTuple):
    """Shape and dtype of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype


class StoredArraySource(FileSource, RandomAccess):
    """Rows of an array in a file. Axes after the first are flattened.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Shape of the array.
    dtype : dtype
        Dtype of the stored numbers, in any byte order.
    """

    def __init__(self, name: str, shape: Sequence[int], dtype: Any) -> None:
        self.name = name
        self.shape = flat_shape(name, shape, dtype)
        self.image_shape = image_shape(shape)
        self.dtype = np.dtype(dtype).newbyteorder("=")


def flat_shape(name: str, shape: Sequence[int], dtype: Any) -> tuple[int, int]:
    """Return the number of rows and features of an array; raise if it is not a table of numbers.

    All axes but the first are flattened into features.
    """
    shape = tuple(int(length) for length in shape)
    if np.dtype(dtype).kind not in NUMBERS:
        raise SourceError(
            f"{name} has dtype {np.dtype(dtype)} and shape {shape}: numbers are needed."
        )
    if len(shape) < 2:
        raise SourceError(
            f"{name} has shape {shape}: at least two axes are needed, rows and features."
        )
    features = math.prod(shape[1:])
    if not shape[0] or not features:
        missing = "features" if shape[0] else "rows"
        raise SourceError(f"{name} has no {missing}: its shape is {shape}.")
    return shape[0], features


def image_shape(shape: Sequence[int]) -> tuple[int, int, int] | None:
    """Return height, width and channels of each row of an array; None if rows are not images."""
    if len(shape) == 3:
        return int(shape[1]), int(shape[2]), 1
    if len(shape) == 4 and shape[3] in (1, 3, 4):
        return int(shape[1]), int(shape[2]), int(shape[3])
    return None


def to_native(values: np.ndarray) -> np.ndarray:
    """Return the values in native byte order; they are copied only if their order differs."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def choose_array(
    name: str, found: Mapping[str, ArrayInfo], key: str | None, *, option: str = "key"
) -> str:
    """Return the key of the array to read: the given one, or the only array with rows of numbers.

    Bounds of grid cells are read only if `key` names them. `option` is the name of the option that gives the key.
    """
    if key is not None:
        if key.strip("/") in found:
            return key.strip("/")
        raise SourceError(f"{name} has no {key!r}: it contains {list_arrays(found)}.")
    tables = {
        key: array
        for key, array in found.items()
        if array.dtype.kind in NUMBERS and len(array.shape) >= 2
    }
    candidates = [key for key in tables if not key.endswith(BOUNDS)]
    if len(candidates) == 1:
        return candidates[0]
    if not tables:
        raise SourceError(
            f"{name} has no array with rows of numbers: it contains {list_arrays(found)}."
        )
    example = (candidates or list(tables))[0]
    raise SourceError(
        f"{name} has {len(tables)} arrays with rows: choose one, for example by {option}={example!r} "
        f"(--{option} {example}). It contains {list_arrays({**tables, **found})}."
    )


def list_arrays(found: Mapping[str, ArrayInfo]) -> str:
    """Return the keys, shapes and dtypes of arrays for a message."""
    lines = [
        f"{key} {array.shape} {array.dtype}" for key, array in list(found.items())[:MAX_LISTED]
    ]
    if len(found) > MAX_LISTED:
        lines.append(f"and {len(found) - MAX_LISTED} more")
    return ", ".join(lines) or "nothing"
