"""Widths that do not divide are filled up with zeros."""

from __future__ import annotations

from typing import Any

import numpy as np


def up(size: int, parts: int) -> int:
    """Return the next multiple."""
    return -(-size // parts) * parts


def filled(values: Any, shape: tuple[int, ...]) -> Any:
    """Return an array followed by zeros along every axis up to this shape."""
    missing = [(0, want - have) for have, want in zip(values.shape, shape, strict=True)]
    if not any(after for _, after in missing):
        return values
    return np.pad(np.asarray(values), missing)
