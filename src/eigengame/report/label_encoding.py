"""Encode row labels for the page: as classes or as numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from eigengame.report.arguments import ReportError
from eigengame.report.facts import json_numbers

MAX_CLASSES = 20
"""Maximum number of distinguishable colours and shapes; the rarest classes are merged."""

MISSING, OTHERS = "no label", "all others"


def check_labels(labels: Any) -> np.ndarray | None:
    """Return one label per row, shape (n,)."""
    if labels is None:
        return None
    if isinstance(labels, str):
        raise ReportError(f"labels={labels!r} is a single string: give one label per row of data.")
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ReportError(f"labels has shape {array.shape}: give one label per row, shape (rows,).")
    return array


def encode_labels(labels: np.ndarray, name: Any) -> dict[str, Any]:
    """Encode labels for the page: classes with the code of each row, or numbers.

    Strings, booleans and up to 20 different whole numbers are classes; other numbers are a colour scale.

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
        if not whole or len(np.unique(finite)) > MAX_CLASSES:
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
    classes = [str(kind) for kind in ordered]
    codes = {kind: code for code, kind in enumerate(ordered)}
    others = len(classes) if len(ordered) < len(counts) else None
    if others is not None:
        classes.append(f"{OTHERS} ({len(counts) - len(ordered)} classes)")
    if absent:
        codes[None] = len(classes)
        classes.append(MISSING)
    return {
        "kind": "classes",
        "classes": classes,
        "grey": len(ordered),
        "codes": [codes.get(kind, others) for kind in kinds],
    }


def _sort_key(kind: Any) -> tuple[bool, Any]:
    """Return a key that sorts numbers by value, followed by texts."""
    number = isinstance(kind, (int, float))
    return (not number, kind if number else str(kind))


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and label != label)
