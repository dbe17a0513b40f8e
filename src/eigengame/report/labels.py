"""What rows are coloured by: a few classes, or a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame.report._check import ReportError
from eigengame.report.facts import listed

MOST_CLASSES = 20
"""More than so many colours and shapes cannot be told apart: the rarest classes become one."""

MISSING, OTHERS = "no label", "all others"


def checked_labels(labels: Any) -> np.ndarray | None:
    """Return one label for each row, shape (n,)."""
    if labels is None:
        return None
    if isinstance(labels, str):
        raise ReportError(f"labels={labels!r} is one text: give one label for each row of data.")
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ReportError(
            f"labels has shape {array.shape}: give one label for each row, shape (rows,)."
        )
    return array


def described(labels: np.ndarray, name: Any) -> dict[str, Any]:
    """Return labels for the page: classes with the code of each row, or numbers.

    Texts, truth values and up to 20 different whole numbers are classes; other numbers are a scale.

    Parameters
    ----------
    labels : array of shape (n,)
    name : object
        What they are called, where known.
    """
    called = {"name": "label" if name is None else str(name)}
    if labels.dtype.kind in "iuf":
        numbers = labels.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        whole = finite.size > 0 and bool((finite == np.round(finite)).all())
        if not whole or len(np.unique(finite)) > MOST_CLASSES:
            return called | {"kind": "numbers", "values": listed(numbers)}
        labels = np.array([int(x) if np.isfinite(x) else None for x in numbers], dtype=object)
    return called | _classes(labels)


def _classes(labels: np.ndarray) -> dict[str, Any]:
    """Return the classes in a natural order, and the code of each row."""
    kinds = [None if _is_missing(label) else label for label in labels.tolist()]
    counts: dict[Any, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    absent = counts.pop(None, 0)
    common = sorted(counts, key=lambda kind: -counts[kind])
    if len(common) > MOST_CLASSES:
        common = common[: MOST_CLASSES - 1]
    ordered = sorted(common, key=_place)
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


def _place(kind: Any) -> tuple[bool, Any]:
    """Return where a class stands: numbers by size, then texts by letter."""
    number = isinstance(kind, (int, float))
    return (not number, kind if number else str(kind))


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and label != label)
