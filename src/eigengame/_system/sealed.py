"""Arrays and facts in one safetensors file, sealed by a digest: any bit that changes later is found on reading."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eigengame._system.files import StorageError, written_whole

DIGEST = "digest"
"""The key of the digest among the metadata of a file."""


def sealed(arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a file with the digest of its arrays and of all other metadata."""
    return {**about, DIGEST: _digest_of(arrays, about)}


def refuse_unless_sealed(arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> None:
    """Raise ValueError where arrays or metadata are not those that the file was sealed with."""
    if DIGEST not in about:
        raise ValueError("its checksum is missing")
    if about[DIGEST] != _digest_of(arrays, about):
        raise ValueError("its checksum does not match its content")


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return all arrays and the metadata of a safetensors file; ValueError or OSError where it is none."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            about = dict(file.metadata() or {})
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, AttributeError) as error:
        # The last three: a dtype that NumPy does not have, from a damaged header.
        raise ValueError(str(error)) from None


def _digest_of(arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> str:
    """Return a digest of names, dtypes, shapes and bytes of arrays, and of metadata."""
    seen: Any = hashlib.blake2b(digest_size=32)

    def add(*facts: Any) -> None:
        seen.update(json.dumps(facts).encode() + b"\n")

    for name, array in sorted(arrays.items()):
        add(name, array.dtype.name, array.shape)
        seen.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    for key, text in sorted(about.items()):
        if key != DIGEST:
            add(key, text)
    return seen.hexdigest()


def write_arrays(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    about: Mapping[str, str],
    error: type[StorageError] = StorageError,
) -> None:
    """Write arrays with facts about them as one sealed safetensors file, whole or not at all."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    with written_whole(path, error) as draft:
        try:
            flat = {name: np.asarray(array, order="C") for name, array in arrays.items()}
            save_file(flat, draft, metadata=sealed(flat, about))
        except SafetensorError as failure:  # its own name for what the system refuses
            raise OSError(str(failure)) from None
