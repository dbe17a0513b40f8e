"""Dask arrays and data frames: lazy blocks of rows, each computed when it is read.

Read here, blocks come to this process one after the other. A fit does not do so: it sends games to where the
blocks are (`eigengame.dask.engine`).
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
        Its blocks of rows, in order: arrays, CSR matrices, or pandas frames.
    lengths : list of int, or None
        Rows of each, where Dask knows them.
    like : Source
        Has the features of all blocks: their number, dtype and names.
    name : str
    token : str
        Dask's own name of the collection, which changes when it does.
    options : dict
        How each block is opened as a source.
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
        """Give all rows: one block of the collection is computed, and held, at a time."""
        for part in self.parts:
            block = part.compute()
            if block.shape[0]:
                yield from sources.as_source(block, **self.options).blocks(0, block.shape[0])

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype and Dask's name."""
        return super().fingerprint() | {"dask": self._token}


def from_dask(data: Any, name: str | None = None, **options: Any) -> DaskSource:
    """Return the source of a Dask array or data frame.

    Parameters
    ----------
    data : dask Array or DataFrame
        Of two axes. Columns in several chunks are put together (`rechunk({1: -1})`): a game needs whole rows.
        Rows need not be known.
    name : str, optional
    **options
        `columns=` and `weights=` of a data frame, as for pandas.
    """
    # By what Dask keeps to itself: a Delayed has any other name that it is asked for.
    if hasattr(data, "_meta_nonempty") and hasattr(data, "columns"):
        return _from_frame(data, name or "dask DataFrame", options)
    if not (hasattr(data, "_meta") and hasattr(data, "rechunk")):
        raise SourceError(
            f"a dask {type(data).__name__} is no table: give a dask array or data frame with rows and "
            "features."
        )
    return _from_array(data, name or "dask array", **options)


def _from_frame(data: Any, name: str, options: dict[str, Any]) -> DaskSource:
    """Return the source of a data frame, whose partitions do not know their rows."""
    # Two rows that Dask makes up of every column's type: they say what pandas would.
    like = sources.as_source(data._meta_nonempty, name=name, **options)
    return DaskSource(
        list(data.to_delayed()), None, like, name=name, token=str(data._name), options=options
    )


def _from_array(data: Any, name: str) -> DaskSource:
    """Return the source of an array, its columns in one chunk."""
    shape, dtype = data.shape, np.dtype(data.dtype)
    if data.ndim != 2:
        raise SourceError(
            f"the {name} has shape {shape}: give one of shape (rows, features), for example by reshape."
        )
    if math.isnan(shape[1]):
        raise SourceError(
            f"the {name} does not know its number of columns: call its compute_chunk_sizes() first."
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
