"""What every source is: rows somewhere, read in order, block by block."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from eigengame.sources._layers import Layers

Values = Any
"""Rows as they lie in a source: an array of shape (m, d), or a SciPy CSR array of that shape."""

DEVICE_BUFFERS = 3
"""Blocks of a source on the device that are there at once: one being made, and two being played."""


SHOWN = 200
"""Characters of an option that a fingerprint shows in full."""


@dataclass(frozen=True)
class Block:
    """Some rows of a source.

    Attributes
    ----------
    values : array or CSR array of shape (m, d)
    weights : array of shape (m,), optional
        How often each row counts; 0 for a row to be passed over.
    """

    values: Values
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: slice) -> Block:
        """Return some of the rows, by a slice."""
        return Block(self.values[rows], None if self.weights is None else self.weights[rows])


class SourceError(ValueError):
    """Data that cannot be read as rows of numbers: says what was seen, where, and what to do."""


class UnknownOption(SourceError):
    """An option that does not belong to the kind of data it was given with."""


class ColumnWarning(UserWarning):
    """A column of a table that is probably not what the user expects: left out, or worth a check."""


class Source(abc.ABC):
    """Rows that can be read in order, from any row on; knows nothing of players or batches.

    Attributes
    ----------
    name : str
        What it is, for messages and provenance.
    shape : tuple of (int or None, int)
        Rows and features; rows are None where nobody knows before the end.
    dtype : dtype
        Of the blocks.
    sparse : bool
        Whether blocks are CSR arrays.
    again : bool
        Whether it can be read more than once.
    feature_names : sequence of str, optional
    alleles : sequence of str, optional
        Of genotypes: the counted and the other allele of each feature, such as "A/G".
    image_shape : tuple of int, optional
        Height, width and channels, where each row is a picture.
    came_from : tuple of (str, dict), optional
        The path and the options it was opened by: what is pickled is these, so that another process opens
        the data itself.
    on_device : bool
        Whether blocks are JAX arrays, in `dtype`, with zeros in rows of weight 0. Such a block may be
        written over once the third after it is asked for (`DEVICE_BUFFERS`): whoever reads it has to be done by
        then, as passes are, which wait for the batch before the last one.
    block_rows : int, optional
        Rows that come at once, where a source would rather not be asked for others.
    layers : Layers, optional
        Where the outputs of a network lie in a row.
    """

    name: str = "data"
    shape: tuple[int | None, int]
    dtype: np.dtype
    sparse: bool = False
    again: bool = True
    views: bool = False
    slow: bool = True
    feature_names: Sequence[str] | None = None
    alleles: Sequence[str] | None = None
    image_shape: tuple[int, int, int] | None = None
    came_from: tuple[str, dict[str, Any]] | None = None
    on_device: bool = False
    block_rows: int | None = None
    layers: Layers | None = None

    @abc.abstractmethod
    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`, the last one shorter."""

    def fingerprint(self) -> dict[str, Any]:
        """Return facts about this source that are known without reading it: plain JSON.

        Every model keeps them, so they must be cheap. A change of the data may leave them as they are:
        `digest` finds it.
        """
        about: dict[str, Any] = {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": str(np.dtype(self.dtype)),
        }
        options = {} if self.came_from is None else self.came_from[1]
        if options:
            about["options"] = {name: _shown(value) for name, value in options.items()}
        return about

    def digest(self) -> str | None:
        """Return a digest of the content, all that a pass reads; None where it cannot be known.

        Only runs with a checkpoint call it. It may take as long as a pass.
        """
        return None

    def in_float64(self) -> Source:
        """Return a source of the same rows whose values are computed in float64.

        Sources that only read numbers return themselves.
        """
        return self

    def feature(self, column: int) -> str:
        """Return what a feature is called in a message."""
        return f"feature {column}"

    def room(self) -> int | None:
        """Return the free bytes where blocks are made, where that is memory apart from JAX's own."""
        return None

    def most_entries(self, size: int) -> int | None:
        """Return the entries of the fullest block of `size` rows, where a sparse source knows it."""
        return None

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.came_from is None:
            return super().__reduce_ex__(protocol)
        return _opened_again, self.came_from


def _shown(value: Any) -> str:
    """Return an option of opening as a short text that differs where the option does."""
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    if len(text) <= SHOWN:
        return text
    return f"{text[:20]}... {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _opened_again(path: str, options: dict[str, Any]) -> Source:
    """Return the source of a path, in the process that it was sent to."""
    from eigengame.sources import as_source

    return as_source(path, **options)


class RandomAccess(Source):
    """A source whose rows can be read from anywhere: it says how to read a range of them."""

    @abc.abstractmethod
    def read(self, begin: int, end: int) -> Values:
        """Return rows `begin` to `end`, of which all exist."""

    def read_columns(self, begin: int, end: int, first: int, last: int) -> Values:
        """Return columns `first` to `last` of these rows; who can leave the others alone does so."""
        return self.read(begin, end)[:, first:last]

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`."""
        n = self.shape[0]
        assert n is not None
        for begin in range(start, n, size):
            yield Block(self.read(begin, min(begin + size, n)))


class InOrder(Source):
    """A source that is read from its beginning, in whatever pieces it comes."""

    @abc.abstractmethod
    def pieces(self) -> Iterable[Values | Block]:
        """Give all rows, in pieces of any length."""

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`: what comes before is read and dropped."""
        return recut(self._checked(), start, size)

    def _checked(self) -> Iterator[Block]:
        """Give the pieces, refusing one whose width is not that of the first."""
        row, width = 0, self.shape[1]
        for piece in self.pieces():
            block = piece if isinstance(piece, Block) else Block(piece)
            shape = block.values.shape
            if len(shape) != 2 or shape[1] != width:
                raise SourceError(
                    f"{self.name}: rows have {width} features at first, but the piece at row {row} has "
                    f"shape {shape}: give pieces of shape (rows, {width})."
                )
            yield block
            row += len(block)


def recut(pieces: Iterable[Block], start: int, size: int) -> Iterator[Block]:
    """Give the rows of the pieces from `start` on, in blocks of exactly `size` but for the last."""
    kept: list[Block] = []
    held, row = 0, 0
    for piece in pieces:
        skip = min(max(start - row, 0), len(piece))
        row += len(piece)
        rest: Block = piece[skip:]
        while len(rest):
            part = rest[: size - held]
            kept.append(part)
            held += len(part)
            rest = rest[len(part) :]
            if held == size:
                yield joined(kept)
                kept, held = [], 0
    if kept:
        yield joined(kept)


def joined(parts: Sequence[Block]) -> Block:
    """Return several blocks as one."""
    if len(parts) == 1:
        return parts[0]
    values = [part.values for part in parts]
    stacked = (
        sparse.vstack(values, format="csr") if sparse.issparse(values[0]) else np.vstack(values)
    )
    if all(part.weights is None for part in parts):
        return Block(stacked)
    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in parts]
    return Block(stacked, np.concatenate(weights))
