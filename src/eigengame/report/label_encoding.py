"""Encode row labels for the page: as classes or as numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from eigengame.report.facts import json_numbers

MAX_CLASSES = 40
"""Maximum number of distinct pairs of colour and mark (`assets/marks.js`); the rarest labels are grouped."""

MAX_WHOLE = 20
"""Maximum number of different whole numbers that are classes; more are a colour scale."""

MAX_LENGTH = 200
"""Longer labels are shortened."""

MISSING, OTHERS = "no label", "other"


def encode_labels(labels: np.ndarray, name: Any) -> dict[str, Any]:
    """Encode labels for the page: classes with the code of each row, or numbers.

    Strings, booleans and up to 20 different whole numbers are classes; other numbers are a colour scale. The
    rarest of more than 40 classes are grouped.

    Parameters
    ----------
    labels : array of shape (n,)
    name : object
        Name of the labels, or None.
    """
    named = {"name": "label" if name is None else str(name)}
    if labels.dtype.kind in "iuf":
        numbers = labels.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        whole = finite.size > 0 and bool((finite == np.round(finite)).all())
        if not whole or len(np.unique(finite)) > MAX_WHOLE:
            return named | {"kind": "numbers", "values": json_numbers(numbers)}
        labels = np.array([int(x) if np.isfinite(x) else None for x in numbers], dtype=object)
    return named | _encode_classes(labels)


def _encode_classes(labels: np.ndarray) -> dict[str, Any]:
    """Return the sorted classes and the code of each row."""
    kinds = [None if _is_missing(label) else label for label in labels.tolist()]
    counts = Counter(kinds)
    absent = counts.pop(None, 0)
    common = [kind for kind, _ in counts.most_common()]
    if len(common) > MAX_CLASSES:
        common = common[: MAX_CLASSES - 1]
    ordered = sorted(common, key=_sort_key)
    classes = [_shortened(str(kind)) for kind in ordered]
    codes = {kind: code for code, kind in enumerate(ordered)}
    grouped = len(counts) - len(ordered)
    others = len(classes) if grouped else None
    if grouped:
        classes.append(OTHERS)
    if absent:
        codes[None] = len(classes)
        classes.append(MISSING)
    return {
        "kind": "classes",
        "classes": classes,
        "grey": len(ordered),
        "grouped": grouped,
        "codes": [codes.get(kind, others) for kind in kinds],
    }


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"


def _sort_key(kind: Any) -> tuple[bool, Any]:
    """Return a key that sorts numbers by value, followed by texts."""
    number = isinstance(kind, (int, float))
    return (not number, kind if number else str(kind))


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and label != label)
