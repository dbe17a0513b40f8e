"""Batches of token ids for a network, from any data with rows of whole numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._digest import combine_digests, digest_of_tree


class TokenBatches:
    """Batches of token ids (m, length), as int64.

    Parameters
    ----------
    data : path
        Rows of whole numbers that `as_source` opens, for example a `.npy` file (texts, length).
    batch : int
        Texts per batch.
    padding : int, optional
        Id of padding. Batches are then dicts of `input_ids` and `attention_mask`, which is 0 for padding, and end
        with their longest text.
    """

    def __init__(
        self, data: str | os.PathLike[str], batch: int, padding: int | None = None
    ) -> None:
        from eigengame.sources import as_source

        self._source: Source = as_source(data)
        if self._source.sparse or self._source.dtype.kind not in "iu":
            raise SourceError(
                f"{self._source.name} has numbers of type {self._source.dtype}: give whole numbers, as ids."
            )
        self._batch, self._padding, self.rows = batch, padding, self._source.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for block in self._source.blocks(0, self._batch):
            ids = np.asarray(block.values).astype(np.int64)
            if self._padding is None:
                yield ids
                continue
            mask = (ids != self._padding).astype(np.int64)
            longest = max(1, int((mask * np.arange(1, ids.shape[1] + 1)[None, :]).max(initial=0)))
            yield {"input_ids": ids[:, :longest], "attention_mask": mask[:, :longest]}

    def digest(self) -> str | None:
        """Return a digest of the ids and of the parameters."""
        parameters = digest_of_tree([self._batch, self._source.fingerprint(), self._padding])
        return combine_digests([parameters, self._source.digest()])
