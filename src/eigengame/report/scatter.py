"""Scatter plot of scores: an even, reproducible sample of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.report.arguments import ReportError
from eigengame.report.label_encoding import encode_labels
from eigengame.report.quantization import quantize_range

MAX_SCORES = 200_000
"""Maximum number of scores in a page: with more rows, fewer components are included."""


def scatter(
    model: Any, data: Any, rows: int | None, labels: np.ndarray | None, most: int, name: Any
) -> dict[str, Any]:
    """Return the scores of at most `most` rows, with their labels.

    Parameters
    ----------
    model : EigenGamePCA
    data : any input of `transform_blocks`
        Read once, block by block.
    rows : int, optional
        Number of rows, if known.
    labels : array of shape (n,), optional
    most : int
    name : object
        Name of the labels, or None.
    """
    if labels is not None and rows is not None and len(labels) != rows:
        raise _length_mismatch(labels, rows)
    known = rows if labels is None else len(labels)
    width = min(model.n_components_, max(2, MAX_SCORES // most))
    blocks = (block[:, :width] for block in model.transform_blocks(data))
    chosen, scores, seen = (
        _stratified_sample(blocks, known, most) if known else _reservoir_sample(blocks, most)
    )
    if labels is not None and len(labels) != seen:
        raise _length_mismatch(labels, seen)
    # Drawn in random order, so that the last class of a sorted table does not cover the others.
    order = np.random.default_rng(0).permutation(len(chosen))
    chosen, scores = chosen[order], scores[order]
    return {
        "rows": chosen.tolist(),
        "of": seen,
        "columns": [quantize_range(column) for column in scores.T],
        "labels": None if labels is None else encode_labels(labels[chosen], name),
    }


def _length_mismatch(labels: np.ndarray, rows: int) -> ReportError:
    return ReportError(
        f"labels has {len(labels)} entries, but data has {rows} rows: give one per row."
    )


def _stratified_sample(
    blocks: Iterator[np.ndarray], rows: int, most: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Sample one row from each of `most` equal intervals; return row numbers, scores and the number of rows.

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
    """Sample at most `most` rows of a stream of unknown length; return row numbers, scores and the number of rows.

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
