"""Where rows lie: the scores of some of them, chosen evenly and always the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.report._check import ReportError
from eigengame.report.labels import described
from eigengame.report.numbers import ramp

BUDGET = 200_000
"""Scores in a page at most: with more rows, fewer components can be chosen."""


def scatter(
    model: Any, data: Any, rows: int | None, labels: np.ndarray | None, most: int, name: Any
) -> dict[str, Any]:
    """Return the scores of at most `most` rows for the page, with their labels.

    Parameters
    ----------
    model : EigenGamePCA
    data : anything that `transform_blocks` takes
        It is read once, block by block.
    rows : int, optional
        How many there are, where known.
    labels : array of shape (n,), optional
    most : int
    name : object
        What the labels are called.
    """
    if labels is not None and rows is not None and len(labels) != rows:
        raise _unequal(labels, rows)
    known = rows if labels is None else len(labels)
    width = min(model.n_components_, max(2, BUDGET // most))
    blocks = (block[:, :width] for block in model.transform_blocks(data))
    chosen, scores, seen = _spread(blocks, known, most) if known else _thinned(blocks, most)
    if labels is not None and len(labels) != seen:
        raise _unequal(labels, seen)
    # Drawn in no order, so that the last class of a sorted table does not hide the others.
    mixed = np.random.default_rng(0).permutation(len(chosen))
    chosen, scores = chosen[mixed], scores[mixed]
    return {
        "rows": chosen.tolist(),
        "of": seen,
        "columns": [ramp(column) for column in scores.T],
        "labels": None if labels is None else described(labels[chosen], name),
    }


def _unequal(labels: np.ndarray, rows: int) -> ReportError:
    return ReportError(
        f"labels has {len(labels)} entries, but data has {rows} rows: give one for each."
    )


def _spread(
    blocks: Iterator[np.ndarray], rows: int, most: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return one row from each of `most` equal stretches of a known length, and the rows seen.

    Its place within the stretch is drawn with a fixed seed: a fixed step would see one class only where
    classes take turns.
    """
    edges = np.linspace(0, rows, min(most, rows) + 1).astype(np.int64)
    places = np.random.default_rng(0).random(len(edges) - 1)
    wanted = edges[:-1] + (places * np.diff(edges)).astype(np.int64)
    found, seen = [], 0
    for block in blocks:
        first, last = np.searchsorted(wanted, [seen, seen + len(block)])
        found.append(block[wanted[first:last] - seen])
        seen += len(block)
    scores = np.concatenate(found)
    return wanted[: len(scores)], scores, seen


def _thinned(blocks: Iterator[np.ndarray], most: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return at most `most` rows of a stream whose length nobody knows, and the rows seen.

    Every row draws a number with a fixed seed, and those with the least numbers stay.
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
