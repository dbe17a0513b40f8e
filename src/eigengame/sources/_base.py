"""The interface of all sources: rows that are read in order, block by block."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from eigengame.sources._grid import Grid
from eigengame.sources._layers import Layers

Values = Any
"""Rows of a block: an array of shape (m, d), or a SciPy CSR array of that shape."""

DEVICE_BUFFERS = 3
"""Blocks of an on-device source that exist at the same time: one being written, two being read."""

MAIN_LAYER = "X"
"""Layer of AnnData that is read by default."""

MAX_OPTION_LENGTH = 200
"""Options with a longer text are shortened to a digest in a fingerprint."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a source.

    Attributes
    ----------
    values : array or CSR array of shape (m, d)
    weights : array of shape (m,), optional
        Sample weights. Rows of weight 0 are ignored.
    """

    values: Values
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: slice) -> Block:
        """Return the rows of a slice."""
        return Block(self.values[rows], None if self.weights is None else self.weights[rows])


def list_items(items: Iterable[Any], most: int = 8) -> str:
    """Return the first items as text for a message, and the number of the others."""
    texts = [repr(item) for item in items]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def one_line(error: BaseException, most: int = 200) -> str:
    """Return the first line of an error, shortened, or its type if it has no text."""
    lines = str(error).strip().splitlines()
    text = lines[0].rstrip(".: ") if lines else type(error).__name__
    return text if len(text) <= most else f"{text[:most]}..."


class SourceError(ValueError):
    """Data that cannot be read as rows of numbers. The message gives the place and a fix."""


class UnknownOption(SourceError):
    """An option that this kind of data does not have."""


class ColumnWarning(UserWarning):
    """A column of a table that was left out, or that is probably not a feature."""


class GenotypeWarning(UserWarning):
    """Genotypes whose result depends on something that was not stated: standardisation, or the strand of SNPs."""


class Source(abc.ABC):
    """Rows of numbers that can be read in order, starting at any row.

    Subclass `RandomAccess` or `InOrder` to write your own source.

    Attributes
    ----------
    name : str
        Name for messages and for the provenance of a model.
    shape : tuple of (int or None, int)
        Number of rows and features. The number of rows is None if it is only known at the end.
    dtype : dtype
        Dtype of the blocks.
    sparse : bool
        Whether blocks are CSR arrays.
    again : bool
        Whether the rows can be read more than once.
    views : bool
        Whether blocks are views of the data. The memory plan then does not count them a second time.
    slow : bool
        Whether reading a block takes time (disk, network, decoding). Blocks are then read ahead on a thread, as
        are blocks in host memory that are transferred to a GPU.
    feature_names : sequence of str, optional
    alleles : sequence of str, optional
        For genotypes: the counted and the other allele of each feature, for example "A/G".
    positions : sequence of str, optional
        For genotypes: chromosome and position of each feature, for example "1:828418"; 0 if unknown.
    image_shape : tuple of int, optional
        Height, width and channels, if each row is an image.
    read_row_ids : callable, optional
        Reads what `row_ids` returns.
    coordinates : mapping, optional
        For maps: "latitude" and "longitude" in the order of the axes of an image, in degrees.
    layer : str, optional
        For AnnData: name of the layer that is read, "raw" or "X".
    grid : Grid, optional
        For fields: dimensions and coordinates of the features.
    opened_from : tuple of (str, dict), optional
        Path and options that the source was opened with. If set, the source is pickled as these two, and
        the receiving process opens the path itself.
    given_path : str, optional
        Path or address as the user gave it. Names begin with it.
    on_device : bool
        Whether blocks are JAX arrays in `dtype`, with zeros in rows of weight 0. The memory of a block may
        be reused once `DEVICE_BUFFERS` further blocks are requested, so its reader must have finished by
        then. Fits guarantee this: they wait for the batch before the previous one.
    block_rows : int, optional
        Preferred number of rows per block, for example the batch size of a data loader.
    layers : Layers, optional
        Positions of a network's layers in a row.
    uncentered : bool
        Whether the second moment of the rows about zero is meant, so that fits with ``center=True`` are refused.
    shifts : bool
        Whether rows are in half precision, and the source can subtract an origin before it writes them (`about`).
    rounds : bool
        Whether the source itself rounds some of them to half precision.
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
    positions: Sequence[str] | None = None
    image_shape: tuple[int, int, int] | None = None
    read_row_ids: Callable[[], Sequence[str] | None] | None = None
    coordinates: Mapping[str, np.ndarray] | None = None
    layer: str | None = None
    grid: Grid | None = None
    opened_from: tuple[str, dict[str, Any]] | None = None
    given_path: str | None = None
    on_device: bool = False
    block_rows: int | None = None
    layers: Layers | None = None
    uncentered: bool = False
    shifts: bool = False
    rounds: bool = False

    @abc.abstractmethod
    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows; the last block may be shorter."""

    def begin_fingerprint(self) -> None:  # noqa: B027 - most sources have nothing to begin
        """Begin to compute what `fingerprint` needs, if a device does that, while the host waits."""

    def fingerprint(self) -> dict[str, Any]:
        """Return facts about the source that are known without reading it, as plain JSON.

        Every model stores them, so they must be cheap. A change of the data can leave them unchanged;
        `digest` detects it.
        """
        about: dict[str, Any] = {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": str(np.dtype(self.dtype)),
        }
        options = {} if self.opened_from is None else self.opened_from[1]
        if options:
            about["options"] = {name: _option_text(value) for name, value in options.items()}
        return about

    def digest(self) -> str | None:
        """Return a digest of everything that a pass reads; None if it cannot be computed.

        Only runs with a checkpoint call it. It may take as long as a pass.
        """
        return None

    def row_ids(self) -> Sequence[str] | None:
        """Return the id of each row, if the data has ids beside its numbers. They are read by this call only."""
        return None if self.read_row_ids is None else self.read_row_ids()

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the columns that identify each row, by name: those of `row_ids` as "id" unless overridden.

        Without ids the result is empty.
        """
        ids = self.row_ids()
        return {} if ids is None else {"id": ids}

    def in_float64(self) -> Source:
        """Return a source of the same rows, with values computed in float64.

        Sources that only read numbers return themselves.
        """
        return self

    def for_worker(self) -> Source:
        """Return the source as a task on a worker of Dask reads it."""
        return self

    def cell_weights(self, weights: Any) -> np.ndarray | None:
        """Return one weight for each feature, shape (d,), from the weights of a field; None for other data."""
        return None

    def about(self, origin: np.ndarray) -> Source:
        """Return a source of the same rows minus an origin (d,), subtracted before numbers are rounded.

        Only sources with `shifts` have it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot subtract an origin.")

    def rounding(self, *, centred: bool) -> str | None:
        """Return how the source rounds numbers to half precision; None if it does not.

        `centred` is whether an origin near the mean is subtracted before (`about`).
        """
        return None

    def describe_feature(self, column: int) -> str:
        """Return a short description of a feature for messages."""
        return f"feature {column}"

    def free_bytes(self) -> int | None:
        """Return the free memory for blocks if they are not allocated by JAX, else None."""
        return None

    def most_entries(self, size: int) -> int | None:
        """Return the largest number of entries in a block of `size` rows, if a sparse source knows it."""
        return None

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.opened_from is None:
            return super().__reduce_ex__(protocol)
        return _reopen, self.opened_from


def _option_text(value: Any) -> str:
    """Return an option as text, shortened to a digest if it is long."""
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    if len(text) <= MAX_OPTION_LENGTH:
        return text
    return f"{text[:20]}... {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _reopen(path: str, options: dict[str, Any]) -> Source:
    """Open a path in the process that unpickles a source."""
    from eigengame.sources import as_source

    return as_source(path, **options)


class RandomAccess(Source):
    """A source that can read any range of its rows. Subclasses implement `read`."""

    @abc.abstractmethod
    def read(self, begin: int, end: int) -> Values:
        """Return rows `begin` to `end` (exclusive), all of which exist."""

    def read_columns(self, begin: int, end: int, first: int, last: int) -> Values:
        """Return columns `first` to `last` of these rows. Override it to avoid reading the others."""
        return self.read(begin, end)[:, first:last]

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        n = self.shape[0]
        assert n is not None
        for begin in range(start, n, size):
            yield Block(self.read(begin, min(begin + size, n)))


class InOrder(Source):
    """A source that is read from its beginning, in pieces of any length. Subclasses implement `pieces`."""

    @abc.abstractmethod
    def pieces(self) -> Iterable[Values | Block]:
        """Yield all rows, in pieces of any length."""

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows. Earlier rows are read and dropped."""
        return rechunk(self._checked_pieces(), start, size)

    def _checked_pieces(self) -> Iterator[Block]:
        """Yield the pieces as blocks, and raise if one has another number of features."""
        row, width = 0, self.shape[1]
        for piece in self.pieces():
            block = piece if isinstance(piece, Block) else Block(piece)
            shape = block.values.shape
            if len(shape) != 2 or shape[1] != width:
                raise SourceError(
                    f"{self.name}: the first rows have {width} features, but the piece at row {row} has "
                    f"shape {shape}: give pieces of shape (rows, {width})."
                )
            yield block
            row += len(block)


def rechunk(pieces: Iterable[Block], start: int, size: int) -> Iterator[Block]:
    """Yield the rows of the pieces from `start` on, in blocks of `size` rows; the last may be shorter."""
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
                yield concatenate(kept)
                kept, held = [], 0
    if kept:
        yield concatenate(kept)


def concatenate(blocks: Sequence[Block]) -> Block:
    """Return the rows of several blocks as one block."""
    if len(blocks) == 1:
        return blocks[0]
    values = [block.values for block in blocks]
    stacked = (
        sparse.vstack(values, format="csr") if sparse.issparse(values[0]) else np.vstack(values)
    )
    if all(block.weights is None for block in blocks):
        return Block(stacked)
    weights = [np.ones(len(block)) if block.weights is None else block.weights for block in blocks]
    return Block(stacked, np.concatenate(weights))
