"""How many components explain a share of the variance: an estimate from some rows, and from a fit with too few."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh

from eigengame.sharding.gather import gather
from eigengame.solver.results.result import Result, count_for
from eigengame.sources import RandomAccess, Source

SAMPLE = 1024
"""Rows from which the number of components is estimated."""

PARTS = 8
"""Places of the data from which these rows are read."""

MARGIN = 1.1
"""Factor of the estimate: to leave out components beyond the share costs less than a second fit."""

FIRST_COMPONENTS = 16
"""Number of components of the first fit if no rows can be read before."""


def estimated_count(source: Source, share: float, most: int, *, center: bool) -> int:
    """Return an estimate of the number of components that explain a share of the variance, from some rows.

    Parameters
    ----------
    source : Source
    share : float
    most : int
        Largest number of components.
    center : bool
        Whether the variance is about the mean.
    """
    if not source.again or source.on_device:
        return min(FIRST_COMPONENTS, most)
    values = _spectrum(list(_some_rows(source)), center=center)
    found = count_for(values, share)
    if 4 * found > len(values):
        # Few rows have a steeper spectrum than all of them.
        found *= 2
    return min(max(math.ceil(MARGIN * found), FIRST_COMPONENTS), most)


def larger_count(result: Result, share: float, most: int) -> int:
    """Return an estimate of the number of components for a share that a fit with fewer did not reach.

    The extra players of the fit continue its spectrum; beyond them the last variance is repeated.
    """
    k, ratios = len(result.components), result.explained_variance_ratio
    if result.stream is not None:
        strengths = gather(result.stream.state.memory.strengths).astype(np.float64)[k:]
        unit = strengths[0] / ratios[-1] if len(strengths) and ratios[-1] > 0 else math.inf
        ratios = np.append(ratios, strengths / max(unit, 1e-300))
    missing = share - float(ratios.sum())
    if missing <= 0:
        found = count_for(ratios, share, 1.0)
    else:
        found = len(ratios) + math.ceil(missing / max(float(ratios[-1]), 1e-3 / most))
    return min(max(math.ceil(MARGIN * found), k + k // 4 + 1), 8 * k, most)


def _some_rows(source: Source) -> Iterator[Any]:
    """Iterate over blocks of some rows: from all parts of the data if it can be read anywhere."""
    n = source.shape[0]
    if isinstance(source, RandomAccess) and n is not None and n > SAMPLE:
        size = SAMPLE // PARTS
        for part in range(PARTS):
            begin = part * (n - size) // (PARTS - 1)
            yield source.read(begin, begin + size)
        return
    for block in source.blocks(0, SAMPLE):
        yield block.values
        return


def _spectrum(blocks: list[Any], *, center: bool) -> np.ndarray:
    """Return the eigenvalues of the inner products of rows, largest first."""
    if sparse.issparse(blocks[0]):
        rows = sparse.vstack(blocks, format="csr").astype(np.float64)
        gram = (rows @ rows.T).toarray()
    else:
        rows = np.concatenate([np.asarray(one, np.float64) for one in blocks])
        gram = rows @ rows.T
    if center:
        gram = gram - gram.mean(axis=0)
        gram = gram - gram.mean(axis=1, keepdims=True)
    if not np.isfinite(gram).all():
        return np.ones(1)  # the fit says where these numbers are
    return np.maximum(eigvalsh((gram + gram.T) / 2)[::-1], 0)
