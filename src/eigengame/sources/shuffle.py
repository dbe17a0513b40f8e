"""Shuffled sources: blocks in random order, and rows in random order within each block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eigengame.sources._base import Block, RandomAccess, Source, SourceError, rechunk

BLOCK = 1024


def shuffled(source: Source, seed: int, block: int = BLOCK) -> ShuffledSource:
    """Return the rows of a source in a random order that depends only on the seed.

    Whole blocks are read, so that reading stays fast. Their order is random, and so is the order of the rows
    within each block. Sample weights must be given in the new order: `weights[source.order()]`.

    Parameters
    ----------
    source : RandomAccess
    seed : int
    block : int
        Rows that are read at once, rounded up to whole chunks of the source.
    """
    if not isinstance(source, RandomAccess):
        raise SourceError(
            f"{source.name} can only be read in order, so it cannot be shuffled: shuffle it when it is "
            "written, or give an array or a file with random access."
        )
    if block < 1:
        raise SourceError(f"block={block}: give at least 1.")
    return ShuffledSource(source, seed, block)


class ShuffledSource(Source):
    """Rows of a source in a random order; see `shuffled`."""

    def __init__(self, source: RandomAccess, seed: int, block: int) -> None:
        chunk = getattr(source, "chunk", 1)
        self._source, self._seed, self._block = source, seed, -(-block // chunk) * chunk
        self.name, self.shape, self.dtype = source.name, source.shape, source.dtype
        self.sparse, self.feature_names = source.sparse, source.feature_names
        self.image_shape, self.alleles = source.image_shape, source.alleles
        self.positions, self.layer = source.positions, source.layer
        self.grid, self.coordinates = source.grid, source.coordinates

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows. Blocks before `start` are not read."""
        order, ends = self._block_order()
        first = int(np.searchsorted(ends, start, side="right"))
        before = int(ends[first - 1]) if first else 0
        pieces = (Block(self._read_block(number)) for number in order[first:])
        return rechunk(pieces, start - before, size)

    def row_ids(self) -> Sequence[str] | None:
        """Return the ids of the rows in the new order."""
        ids = self._source.row_ids()
        return None if ids is None else [ids[i] for i in self.order()]

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the id columns of the source in the new order."""
        found, order = self._source.id_columns(), self.order()
        return {name: [ids[i] for i in order] for name, ids in found.items()}

    def cell_weights(self, weights: Any) -> np.ndarray | None:
        """Return the weights of the features of the source."""
        return self._source.cell_weights(weights)

    def describe_feature(self, column: int) -> str:
        """Return the description of the source."""
        return self._source.describe_feature(column)

    def in_float64(self) -> Source:
        """Return the same rows in the same order, computed in float64."""
        source = self._source.in_float64()
        if source is self._source:
            return self
        if not isinstance(source, RandomAccess):
            raise SourceError(
                f"{self.name}: in_float64() of a {type(self._source).__name__} must return a source with "
                "random access, because it is shuffled."
            )
        return ShuffledSource(source, self._seed, self._block)

    def order(self) -> np.ndarray:
        """Return the original index of each row, shape (n,)."""
        return np.concatenate([self._row_order(number) for number in self._block_order()[0]])

    def fingerprint(self) -> dict[str, Any]:
        """Return the fingerprint of the source, with seed and block size."""
        return self._source.fingerprint() | {"shuffled": {"seed": self._seed, "block": self._block}}

    def digest(self) -> str | None:
        """Return the digest of the source. Seed and block size are in the fingerprint."""
        return self._source.digest()

    def _block_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the blocks in random order, and the row after each of them."""
        rows = self._source.shape[0]
        assert rows is not None
        order = np.random.default_rng(self._seed).permutation(-(-rows // self._block))
        lengths = np.minimum(self._block, rows - order * self._block)
        return order, np.cumsum(lengths)

    def _row_order(self, number: int) -> np.ndarray:
        """Return the original indices of one block's rows, in random order."""
        rows = self._source.shape[0]
        assert rows is not None
        begin, end = number * self._block, min((number + 1) * self._block, rows)
        within = np.random.default_rng([self._seed, int(number)]).permutation(end - begin)
        return begin + within

    def _read_block(self, number: int) -> Any:
        """Return the rows of one block in random order."""
        rows = self._row_order(number)
        begin = int(number) * self._block
        return self._source.read(begin, begin + len(rows))[rows - begin]
