"""Even, reproducible samples of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def sample_rows(
    blocks: Iterator[np.ndarray], rows: int | None, most: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the numbers and the scores of at most `most` rows, and the number of all rows.

    Parameters
    ----------
    blocks : iterator of arrays of shape (m, k)
        Scores of consecutive rows.
    rows : int, optional
        Number of all rows, if known.
    most : int
    """
    return _stratified_sample(blocks, rows, most) if rows else _reservoir_sample(blocks, most)


def _stratified_sample(
    blocks: Iterator[np.ndarray], rows: int, most: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Sample one row from each of `most` equal intervals.

    The position within the interval is random with a fixed seed: with a fixed step, periodic data would show only
    one of its classes.
    """
    edges = np.linspace(0, rows, min(most, rows) + 1).astype(np.int64)
    offsets = np.random.default_rng(0).random(len(edges) - 1)
    wanted = edges[:-1] + (offsets * np.diff(edges)).astype(np.int64)
    found, seen = [], 0
    for block in blocks:
        first, last = np.searchsorted(wanted, [seen, seen + len(block)])
        found.append(block[wanted[first:last] - seen])
        seen += len(block)
    scores = np.concatenate(found)
    return wanted[: len(scores)], scores, seen


def _reservoir_sample(
    blocks: Iterator[np.ndarray], most: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Sample at most `most` rows of a stream of unknown length.

    Each row gets a random number from a fixed seed, and the rows with the smallest numbers are kept.
    """
    random, seen = np.random.default_rng(0), 0
    chosen, drawn, scores = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0))
    for block in blocks:
        scores = block if seen == 0 else np.concatenate([scores, block])
        chosen = np.concatenate([chosen, np.arange(seen, seen + len(block))])
        drawn = np.concatenate([drawn, random.random(len(block))])
        seen += len(block)
        if len(drawn) > most:
            kept = np.sort(np.argpartition(drawn, most)[:most])
            chosen, drawn, scores = chosen[kept], drawn[kept], scores[kept]
    return chosen, scores, seen
