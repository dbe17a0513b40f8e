"""Dask arrays and data frames: lazy blocks of rows, each computed when it is read.

Reading this source computes the blocks one after the other in this process. A fit instead sends its work to the
workers that hold the blocks (`eigengame.dask.engine`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigengame import sources
from eigengame.sources._base import Block, InOrder, Source, SourceError


class DaskSource(InOrder):
    """Rows of a Dask collection.

    Parameters
    ----------
    parts : list of Delayed
        Blocks of rows, in order: arrays, CSR matrices, or pandas frames.
    lengths : list of int, or None
        Rows of each block, if Dask knows them.
    like : Source
        Source with the same number, dtype and names of features.
    name : str
    token : str
        Dask's name of the collection, which depends on its content.
    options : dict
        Options for opening each block as a source.
    """

    def __init__(
        self,
        parts: list[Any],
        lengths: list[int] | None,
        like: Source,
        *,
        name: str,
        token: str,
        options: dict[str, Any],
    ) -> None:
        self.parts, self.lengths, self.options = parts, lengths, options
        self.name, self._token = name, token
        self.shape = (None if lengths is None else sum(lengths), like.shape[1])
        self.dtype, self.sparse, self.feature_names = like.dtype, like.sparse, like.feature_names

    def pieces(self) -> Iterator[Block]:
        """Yield all rows. One block of the collection is in memory at a time."""
        for part in self.parts:
            block = part.compute()
            if block.shape[0]:
                yield from sources.as_source(block, **self.options).blocks(0, block.shape[0])

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype and Dask's name of the collection."""
        return super().fingerprint() | {"dask": self._token}


def from_dask(data: Any, name: str | None = None, **options: Any) -> DaskSource:
    """Return the rows of a Dask array or data frame.

    Parameters
    ----------
    data : dask Array or DataFrame
        With two axes. Column chunks are merged (`rechunk({1: -1})`), because whole rows are needed. The
        number of rows may be unknown.
    name : str, optional
    **options
        `columns=`, `weights=` and `drop=` of a data frame, as for pandas.
    """
    # Private attributes are tested, because a Delayed has every public one.
    if hasattr(data, "_meta_nonempty") and hasattr(data, "columns"):
        return _from_frame(data, name or "dask DataFrame", options)
    if not (hasattr(data, "_meta") and hasattr(data, "rechunk")):
        raise SourceError(
            f"a dask {type(data).__name__} is not a table: give a dask array or data frame with rows and "
            "features."
        )
    return _from_array(data, name or "dask array", **options)


def _from_frame(data: Any, name: str, options: dict[str, Any]) -> DaskSource:
    """Return the rows of a data frame, whose partitions have unknown lengths."""
    # Dask provides a frame of two example rows with the same column types.
    like = sources.as_source(data._meta_nonempty, name=name, **options)
    return DaskSource(
        list(data.to_delayed()), None, like, name=name, token=str(data._name), options=options
    )


def _from_array(data: Any, name: str) -> DaskSource:
    """Return the rows of an array, with its columns in one chunk."""
    shape, dtype = data.shape, np.dtype(data.dtype)
    if data.ndim != 2:
        raise SourceError(
            f"the {name} has shape {shape}: give one of shape (rows, features), for example by reshape."
        )
    if math.isnan(shape[1]):
        raise SourceError(
            f"the {name} has an unknown number of columns: call its compute_chunk_sizes() first."
        )
    if dtype.kind not in "fiub":
        raise SourceError(
            f"the {name} has dtype {dtype}: give numbers, for example by astype(float)."
        )
    if data.numblocks[1] > 1:
        data = data.rechunk({1: -1})
    known = not any(math.isnan(rows) for rows in data.chunks[0])
    empty = np.empty((0, shape[1]), dtype)
    like = sources.as_source(type(data._meta)(empty) if issparse(data._meta) else empty)
    return DaskSource(
        list(data.to_delayed().ravel()),
        [int(rows) for rows in data.chunks[0]] if known else None,
        like,
        name=name,
        token=str(data.name),
        options={},
    )
