"""Orders of rows in which a single pass is likely to miss or to misjudge a direction.

An order is a function of rows (n, d), the length of a batch and a random generator that returns indices (n,). The
true components do not depend on it, except where older rows count less.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ORDERED = (
    "sorted_rows",
    "last_row",
    "last_batch",
    "first_batch",
    "growing",
    "moving_mean",
    "light_start",
    "near_underflow",
)
"""Families whose rows are drawn in a hostile order, which another order would undo."""

Order = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def drawn(rows: np.ndarray, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Return the order in which the family has its rows."""
    return np.arange(len(rows))


def by_norm(rows: np.ndarray, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows by their distance from the mean, either the nearest or the farthest first."""
    return _either_way(np.linalg.norm(_centred(rows), axis=1), rng)


def by_small_score(rows: np.ndarray, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows by their score along one of the smaller components."""
    scores = _scores(rows)
    return _either_way(scores[:, rng.integers(scores.shape[1] // 2, scores.shape[1])], rng)


def by_cluster(rows: np.ndarray, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows by the nearest of eight of them, cluster after cluster."""
    centred = _centred(rows)
    centres = centred[rng.choice(len(rows), min(8, len(rows)), replace=False)]
    squares = np.sum(centres**2, axis=1)
    nearest = np.argmin(squares - 2 * centred @ centres.T, axis=1)
    return np.argsort(nearest, kind="stable")


def largest_last(rows: np.ndarray, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows by the size of their score along the first component, the largest last."""
    return np.argsort(np.abs(_scores(rows)[:, 0]), kind="stable")


def largest_first(rows: np.ndarray, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows by the size of their score along the first component, the largest first."""
    return largest_last(rows, batch, rng)[::-1]


def alternating(rows: np.ndarray, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Return batches that alternate between rows along the first and rows along the second component."""
    scores = _scores(rows)
    sorted_rows = np.argsort(scores[:, 0] ** 2 - scores[:, 1] ** 2, kind="stable")
    halves = np.array_split(sorted_rows, 2)
    # Batches of the halves in turn; the rows that are left over come last.
    whole = len(halves[1]) // batch * batch
    turns = np.stack([half[:whole].reshape(-1, batch) for half in halves], axis=1)
    return np.concatenate([turns.ravel(), *(half[whole:] for half in halves)])


def _centred(rows: np.ndarray) -> np.ndarray:
    """Return the rows about their mean in float64, divided by the largest number."""
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    return centred / max(np.abs(centred).max(initial=0.0), np.finfo(float).tiny)


def _scores(rows: np.ndarray) -> np.ndarray:
    """Return the scores (n, d) along all components, largest first; they only decide the order."""
    centred = _centred(rows)
    return centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1]


def _either_way(keys: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the order of increasing or of decreasing keys."""
    order = np.argsort(keys, kind="stable")
    return order if rng.random() < 0.5 else order[::-1]


ORDERS: dict[str, Order] = {
    one.__name__: one
    for one in (
        drawn,
        by_norm,
        by_small_score,
        by_cluster,
        largest_last,
        largest_first,
        alternating,
    )
}
