"""Arrays and metadata in one safetensors file with a checksum, which detects any later change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eigengame._system.atomic_write import StorageError, atomic_write

DIGEST = "digest"
"""Metadata key of the checksum."""


def add_checksum(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata with a checksum of the arrays and of all other metadata."""
    return {**metadata, DIGEST: _checksum(arrays, metadata)}


def verify_checksum(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Raise ValueError if the checksum is missing or does not match the arrays and metadata."""
    if DIGEST not in metadata:
        raise ValueError("its checksum is missing")
    if metadata[DIGEST] != _checksum(arrays, metadata):
        raise ValueError("its checksum does not match its content")


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and metadata of a safetensors file; ValueError or OSError if it is not one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            metadata = dict(file.metadata() or {})
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, AttributeError) as error:
        # The last three: a damaged header names a dtype that NumPy does not have.
        raise ValueError(str(error)) from None


def lines_to_array(lines: Sequence[str]) -> np.ndarray:
    """Return lines of text as bytes in UTF-8. A safetensors file may have any number of them as an array."""
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def array_to_lines(array: np.ndarray) -> list[str]:
    """Return the lines of `lines_to_array`."""
    return array.tobytes().decode().split("\n")


def _checksum(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    """Return a checksum of the names, dtypes, shapes and bytes of arrays, and of metadata."""
    state: Any = hashlib.blake2b(digest_size=32)

    def add(*values: Any) -> None:
        state.update(json.dumps(values).encode() + b"\n")

    for name, array in sorted(arrays.items()):
        add(name, array.dtype.name, array.shape)
        state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    for key, text in sorted(metadata.items()):
        if key != DIGEST:
            add(key, text)
    return state.hexdigest()


def write_arrays(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, str],
    error: type[StorageError] = StorageError,
) -> None:
    """Write arrays and metadata atomically as a safetensors file with a checksum."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    with atomic_write(path, error) as draft:
        try:
            flat = {name: np.asarray(array, order="C") for name, array in arrays.items()}
            save_file(flat, draft, metadata=add_checksum(flat, metadata))
        except SafetensorError as failure:  # its wrapper of system errors
            raise OSError(str(failure)) from None
