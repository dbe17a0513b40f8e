"""Scatter plot of scores: a sample of the rows of one or two data sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame.report.label_encoding import encode_labels
from eigengame.report.quantization import quantize_range
from eigengame.report.row_set import RowSet, encode_ids
from eigengame.report.sampling import sample_rows

MAX_SCORES = 200_000
"""Maximum number of scores in a page: with more rows, fewer components are included."""


def scatter(model: Any, rows: RowSet, overlay: RowSet | None, most: int) -> dict[str, Any]:
    """Return the scores of at most `most` rows, with labels, ids and times; and the same of an overlay.

    Parameters
    ----------
    model : EigenGamePCA
    rows : RowSet
    overlay : RowSet, optional
        A second data set, projected by the same model.
    most : int
        Maximum number of rows of each data set.
    """
    sets = 1 if overlay is None else 2
    width = min(model.n_components_, max(2, MAX_SCORES // (sets * most)))
    return _scores(model, rows, width, most) | {
        "overlay": None if overlay is None else _scores(model, overlay, width, most)
    }


def _scores(model: Any, rows: RowSet, width: int, most: int) -> dict[str, Any]:
    """Return the first `width` scores of a sample of the rows."""
    known = rows.rows
    if known is not None:
        rows.check_lengths(known)
    blocks = (block[:, :width] for block in model.transform_blocks(rows.data))
    chosen, scores, seen = sample_rows(blocks, known, most)
    rows.check_lengths(seen)
    # Drawn in random order, so that the last class of a sorted table does not cover the others.
    order = np.random.default_rng(0).permutation(len(chosen))
    chosen, scores = chosen[order], scores[order]
    return {
        "name": rows.name,
        "rows": chosen.tolist(),
        "of": seen,
        "columns": [quantize_range(column) for column in scores.T],
        "labels": None
        if rows.labels is None
        else encode_labels(rows.labels[chosen], rows.label_name),
        "ids": None if rows.ids is None else encode_ids(rows.ids[chosen]),
        "time": None if rows.times is None else rows.times.encoded(chosen),
    }
