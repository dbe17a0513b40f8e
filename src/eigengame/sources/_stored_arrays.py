"""What sources of files share: shapes of tables, the choice among several, signs of change."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eigengame.sources._base import SourceError

NUMBERS = "fiub"
"""Kinds of dtype that are read: floats, whole numbers, bools."""

BOUNDS = ("_bnds", "_bounds")
"""Endings of variables that hold the edges of a grid's cells (CF conventions), which are not data."""

NAMED = 12
"""Arrays named in a message before the rest is counted."""


class Array(NamedTuple):
    """What a file says of one of its arrays."""

    shape: tuple[int, ...]
    dtype: np.dtype


def is_remote(path: str) -> bool:
    """Say whether a path is an address for fsspec."""
    return "://" in path


def local(path: str | os.PathLike[str], kind: str) -> str:
    """Return a path of this machine, or say that this kind of file is read from there only."""
    found = os.fspath(path)
    if is_remote(found):
        raise SourceError(
            f"{found} is an address, but {kind} are read from local disk only: copy the file first."
        )
    if not os.path.isfile(found):
        raise SourceError(f"{found} is no file: check the path (from {os.getcwd()}).")
    return found


def flat_shape(name: str, shape: Sequence[int], dtype: Any) -> tuple[int, int]:
    """Return rows and features of an array, all axes but the first flattened, or say why it has none."""
    shape = tuple(int(length) for length in shape)
    if np.dtype(dtype).kind not in NUMBERS:
        raise SourceError(f"{name} holds {np.dtype(dtype)}, shape {shape}: numbers are needed.")
    if len(shape) < 2:
        raise SourceError(
            f"{name} has shape {shape}: at least two axes are needed, rows and features."
        )
    features = math.prod(shape[1:])
    if not shape[0] or not features:
        what = "features" if shape[0] else "rows"
        raise SourceError(f"{name} has no {what}: its shape is {shape}.")
    return shape[0], features


def image_shape(shape: Sequence[int]) -> tuple[int, int, int] | None:
    """Return height, width and channels of each row of an array, where rows look like pictures."""
    if len(shape) == 3:
        return int(shape[1]), int(shape[2]), 1
    if len(shape) == 4 and shape[3] in (1, 3, 4):
        return int(shape[1]), int(shape[2]), int(shape[3])
    return None


def native(values: np.ndarray) -> np.ndarray:
    """Return numbers in this machine's byte order; a copy only where they have the other one."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def chosen(name: str, found: Mapping[str, Array], key: str | None) -> str:
    """Return which array is meant: the one named, or the only one with rows of numbers.

    Bounds of a grid's cells are read only if they are named.
    """
    if key is not None:
        if key.strip("/") in found:
            return key.strip("/")
        raise SourceError(f"{name} has no {key!r}: it holds {listed(found)}.")
    tables = {
        key: array
        for key, array in found.items()
        if array.dtype.kind in NUMBERS and len(array.shape) >= 2
    }
    candidates = [key for key in tables if not key.endswith(BOUNDS)]
    if len(candidates) == 1:
        return candidates[0]
    if not tables:
        raise SourceError(f"{name} has no array with rows of numbers: it holds {listed(found)}.")
    example = (candidates or list(tables))[0]
    raise SourceError(
        f"{name} has {len(tables)} arrays with rows: choose one, for example by key={example!r} (--key {example}). "
        f"It holds {listed({**tables, **found})}."
    )


def listed(found: Mapping[str, Array]) -> str:
    """Return keys with shapes, for a message."""
    named = [f"{key} {array.shape} {array.dtype}" for key, array in list(found.items())[:NAMED]]
    if len(found) > NAMED:
        named.append(f"and {len(found) - NAMED} more")
    return ", ".join(named) or "nothing"


def stamp(path: str | None, key: str | None = None) -> dict[str, Any]:
    """Return what tells a file from a changed one: size and time, or what fsspec knows of it."""
    about: dict[str, Any] = {} if key is None else {"key": key}
    if path is None:
        return about
    if is_remote(path):
        from eigengame.sources._remote_array import file_system

        files, inside = file_system(path)
        return about | {"version": str(files.ukey(inside))}
    seen = os.stat(path)
    return about | {"bytes": seen.st_size, "modified": seen.st_mtime_ns}


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array to read into that lies as JAX wants it: a CPU then takes it without a copy."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size].view(dtype).reshape(shape)
