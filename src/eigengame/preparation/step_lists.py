"""Lists of preparation steps: selections joined to the step before them, and digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame.preparation._base import PreparationStep
from eigengame.preparation.column_selection import ColumnSelection

MAX_SHOWN = 8
"""Lists with more elements are shortened to a digest in a fingerprint."""


def with_selections(
    steps: Sequence[PreparationStep],
) -> list[tuple[PreparationStep | None, ColumnSelection | None]]:
    """Return each step with the selection that follows it; None in place of a selection that follows a step."""
    pairs: list[tuple[PreparationStep | None, ColumnSelection | None]] = []
    for step in steps:
        before = pairs[-1] if pairs else (None, None)
        if isinstance(step, ColumnSelection) and before[0] is not None and before[1] is None:
            pairs[-1] = (before[0], step)
            pairs.append((None, None))
        else:
            pairs.append((step, None))
    return pairs


def step_digest(step: PreparationStep) -> dict[str, Any]:
    """Return a step as short JSON, with digests of arrays and long lists."""
    long = {
        name: json.dumps(value).encode()
        for name, value in step.facts().items()
        if isinstance(value, list) and (len(value) > MAX_SHOWN or any(map(_is_dict, value)))
    }
    arrays = {name: np.ascontiguousarray(array).tobytes() for name, array in step.arrays().items()}
    return step.facts() | {
        name: hashlib.sha256(content).hexdigest()[:16] for name, content in (long | arrays).items()
    }


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)
