"""Padding with zeros, for sizes that the number of devices does not divide."""

from __future__ import annotations

from typing import Any

import numpy as np


def round_up(size: int, parts: int) -> int:
    """Return the smallest multiple of `parts` that is not below `size`."""
    return -(-size // parts) * parts


def pad(values: Any, shape: tuple[int, ...]) -> Any:
    """Return an array padded with zeros at the end of each axis, up to `shape`."""
    missing = [(0, want - have) for have, want in zip(values.shape, shape, strict=True)]
    if not any(after for _, after in missing):
        return values
    return np.pad(np.asarray(values), missing)
