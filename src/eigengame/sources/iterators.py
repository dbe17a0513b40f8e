"""Iterables of arrays or sparse matrices, in pieces of any length."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from eigengame.sources._base import InOrder, SourceError, Values
from eigengame.sources._digest import digest_of_blocks
from eigengame.sources.sparse import checked_csr


class IteratorSource(InOrder):
    """Rows of an iterable of arrays.

    Parameters
    ----------
    data : iterable of arrays of shape (m, d) or (d,)
        A generator can be read once; a list, or an object whose `iter` starts again, any number of times.
        Pieces can also be sparse matrices, nested lists, data frames, or pairs (rows, labels). Axes after
        the first are flattened.
    name : str
    """

    def __init__(self, data: Iterable[Any], name: str = "stream") -> None:
        self.name = name
        self.again = not isinstance(data, Iterator)
        self._data = data
        self._started = False
        iterator = iter(data)
        try:
            seen = next(iterator)
        except StopIteration:
            raise SourceError(f"{name} has no rows: it ended before the first piece.") from None
        first = as_piece(seen, name)
        # A generator cannot give its first piece again, so it is put back.
        self._remaining = itertools.chain([first], iterator)
        self.shape = (None, first.shape[1])
        self.dtype = first.dtype
        self.sparse = sparse.issparse(first)
        if not self.shape[1]:
            raise SourceError(f"{name}: the first piece has shape {first.shape}: no features.")
        labels = list(getattr(seen, "columns", []))  # of a data frame
        self.feature_names = labels if labels and all(isinstance(x, str) for x in labels) else None

    def pieces(self) -> Iterator[Values]:
        """Yield the pieces; raise on the second pass over a generator."""
        if not self.again and self._started:
            raise SourceError(
                f"{self.name} can be read once, and was read already: give a list or a path, or create it "
                "again."
            )
        self._started = True
        return self._check_kind(self._data if self.again else self._remaining)

    def digest(self) -> str | None:
        """Return a digest of all pieces of a list; None for generators and other iterables."""
        return digest_of_blocks(self) if isinstance(self._data, (list, tuple)) else None

    def _check_kind(self, pieces: Iterable[Any]) -> Iterator[Values]:
        """Yield the pieces as arrays; raise if dense and sparse pieces are mixed."""
        row = 0
        for given in pieces:
            piece = as_piece(given, self.name, row)
            if sparse.issparse(piece) != self.sparse:
                first, here = ("sparse", "dense") if self.sparse else ("dense", "sparse")
                raise SourceError(
                    f"{self.name}: the first piece is {first}, but the one at row {row} is {here}: give "
                    "pieces of one kind."
                )
            yield piece
            row += piece.shape[0]


def as_piece(piece: Any, name: str, row: int = 0) -> Values:
    """Return one piece, which begins at `row` of the stream, as an array or CSR array with two axes."""
    if isinstance(piece, (tuple, list)) and len(piece) and hasattr(piece[0], "shape"):
        piece = _rows_of(piece)
    if sparse.issparse(piece):
        return checked_csr(piece, f"{name}: the piece at row {row}")
    if hasattr(piece, "detach"):
        piece = tensor_to_numpy(piece)
    try:
        array = np.asarray(piece)
    except ValueError as error:
        raise SourceError(
            f"{name}: the piece at row {row} is not a table of numbers ({error}): give rows of one length."
        ) from None
    if array.dtype.kind not in "fiub":
        raise SourceError(
            f"{name}: the piece at row {row} has dtype {array.dtype}: give numbers, in arrays of shape "
            "(rows, features)."
        )
    if array.ndim == 0:
        raise SourceError(
            f"{name}: the piece at row {row} is a single number: give rows, or arrays of shape "
            "(rows, features)."
        )
    if array.ndim == 1:
        return array[None, :]
    return array.reshape(len(array), -1) if array.ndim > 2 else array


def tensor_to_numpy(tensor: Any) -> np.ndarray:
    """Return a torch tensor as an array. bfloat16, which NumPy lacks, becomes float32."""
    tensor = tensor.detach().cpu()
    tensor = tensor.float() if "bfloat16" in str(tensor.dtype) else tensor
    return np.asarray(tensor.numpy())


def _rows_of(parts: Any) -> Any:
    """Return the rows of a piece of several arrays: stack a list of rows, else take the first array."""
    one_axis = all(getattr(part, "ndim", 0) == 1 for part in parts)
    if isinstance(parts, list) and one_axis and len({part.shape for part in parts}) == 1:
        return np.stack([np.asarray(part) for part in parts])
    return parts[0]
