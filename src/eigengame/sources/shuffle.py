"""Rows in another order: blocks shuffled by a seed, and rows within each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.sources._base import Block, RandomAccess, Source, SourceError, recut

BLOCK = 1024


def shuffled(source: Source, seed: int, block: int = BLOCK) -> Shuffled:
    """Return the rows of a source in an order that the seed decides.

    Whole blocks are read, in an order drawn from the seed; the rows of each in one drawn from the seed and
    its number. So reading stays fast, and any row can come first. Weights belong to rows as they come: give
    `weights[source.order()]`.

    Parameters
    ----------
    source : RandomAccess
        Rows must be readable from anywhere.
    seed : int
    block : int
        Rows that are read at once, rounded up to whole chunks where the source lies in chunks.
    """
    if not isinstance(source, RandomAccess):
        raise SourceError(
            f"{source.name} is read from its beginning on, so it cannot be shuffled: shuffle it where it is "
            "written, or give an array or a file with rows that can be read from anywhere."
        )
    if block < 1:
        raise SourceError(f"block={block}: give at least 1.")
    return Shuffled(source, seed, block)


class Shuffled(Source):
    """A source whose blocks, and rows within them, come in another order; see `shuffled`."""

    def __init__(self, source: RandomAccess, seed: int, block: int) -> None:
        chunk = getattr(source, "chunk", 1)
        self._source, self._seed, self._block = source, seed, -(-block // chunk) * chunk
        self.name, self.shape, self.dtype = source.name, source.shape, source.dtype
        self.sparse, self.feature_names = source.sparse, source.feature_names
        self.image_shape, self.alleles = source.image_shape, source.alleles

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`; whole blocks before it are not read."""
        order, ends = self._blocks()
        first = int(np.searchsorted(ends, start, side="right"))
        before = int(ends[first - 1]) if first else 0
        pieces = (Block(self._piece(number)) for number in order[first:])
        return recut(pieces, start - before, size)

    def in_float64(self) -> Source:
        """Return the same rows in the same order, computed in float64."""
        read = self._source.in_float64()
        if read is self._source:
            return self
        if not isinstance(read, RandomAccess):
            raise SourceError(
                f"{self.name}: in_float64() of a {type(self._source).__name__} must return rows that can be "
                "read from anywhere, to be shuffled."
            )
        return Shuffled(read, self._seed, self._block)

    def order(self) -> np.ndarray:
        """Return the place in the source of each row that comes, shape (n,)."""
        return np.concatenate([self._rows(number) for number in self._blocks()[0]])

    def fingerprint(self) -> dict[str, Any]:
        """Return that of the source, with seed and block."""
        return self._source.fingerprint() | {"shuffled": {"seed": self._seed, "block": self._block}}

    def digest(self) -> str | None:
        """Return that of the source: seed and block, which decide the order, are in the fingerprint."""
        return self._source.digest()

    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the order of the blocks, and the row at which each of them has come."""
        rows = self._source.shape[0]
        assert rows is not None
        order = np.random.default_rng(self._seed).permutation(-(-rows // self._block))
        lengths = np.minimum(self._block, rows - order * self._block)
        return order, np.cumsum(lengths)

    def _rows(self, number: int) -> np.ndarray:
        """Return the places in the source of the rows of one block, as they come."""
        rows = self._source.shape[0]
        assert rows is not None
        begin, end = number * self._block, min((number + 1) * self._block, rows)
        within = np.random.default_rng([self._seed, int(number)]).permutation(end - begin)
        return begin + within

    def _piece(self, number: int) -> Any:
        """Return the rows of one block, as they come."""
        places = self._rows(number)
        begin = int(number) * self._block
        return self._source.read(begin, begin + len(places))[places - begin]
