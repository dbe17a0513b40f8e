"""Models applied to Dask collections: what comes out is a Dask array, computed when it is asked for."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from eigengame.dask.partitions import opened_part, split_up
from eigengame.model import Model
from eigengame.sources import Source


def lazy_scores(source: Source, model: Model, *, whiten: bool) -> Any:
    """Return the scores of a Dask source as a Dask array of shape (n, k), one block for each of its blocks.

    Rows that Dask does not know stay unknown. Nothing is computed now.
    """
    parts, k = split_up(source), len(model.components)
    dtype = np.dtype(np.float32 if source.dtype == np.float32 else np.float64)
    scores = partial(
        block_scores,
        model,
        whiten=whiten,
        steps=parts.steps,
        options=parts.options or {},
        dtype=dtype,
    )
    return _stacked(parts.data, parts.lengths, scores, k, dtype)


def lazy_rows(scores: Any, model: Model, *, whiten: bool) -> Any:
    """Return rows from a Dask array of scores, as a Dask array of shape (n, d)."""
    d = model.components.shape[1]
    dtype = np.dtype(np.float32 if scores.dtype == np.float32 else np.float64)
    whole = scores.rechunk({1: -1})
    return whole.map_blocks(
        partial(model.restore, whiten=whiten), dtype=dtype, chunks=(whole.chunks[0], (d,))
    )


def block_scores(
    model: Model, data: Any, *, whiten: bool, steps: tuple[Any, ...], options: dict, dtype: np.dtype
) -> np.ndarray:
    """Return the scores of one block. Runs where Dask puts it."""
    if data.shape[0] == 0:
        return np.empty((0, len(model.components)), dtype)
    source = opened_part(data, "block", steps, options)
    found = list(model.score_blocks(source, 4096, whiten=whiten))
    return np.concatenate(found).astype(dtype, copy=False)


def _stacked(
    parts: list[Any], lengths: list[int] | None, function: Any, width: int, dtype: np.dtype
) -> Any:
    """Return a Dask array of what a function makes of each part."""
    import dask.array as da

    import dask

    rows = [math.nan] * len(parts) if lengths is None else lengths
    made = dask.delayed(function, pure=True, traverse=False)
    blocks = [
        da.from_delayed(made(part), (count, width), dtype=dtype)
        for part, count in zip(parts, rows, strict=True)
    ]
    return da.concatenate(blocks, axis=0)
