"""Digests of content: two sources with the same digest give the same rows, whatever their names and times.

They are computed only for a checkpoint. Memory stays flat: nothing is copied whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from eigengame.sources._base import Source

WHOLE = 2**26
"""Files of up to so many bytes are digested in full."""

PIECE = 2**16
"""Bytes of each piece that is digested of a larger file."""

PIECES = {False: 1024, True: 64}
"""Pieces of a larger file, at even distances from its first byte to its last: local, and remote."""

AT_ONCE = 2**22
"""Bytes that are read, or made contiguous, at a time."""


def digest_of_array(array: Any) -> str:
    """Return a digest of dtype, shape and all numbers of an array."""
    seen = _new()
    _add(seen, np.asarray(array))
    return seen.hexdigest()


def digest_of_tree(tree: Any) -> str:
    """Return a digest of nested dicts, lists and tuples of arrays and plain values."""
    seen = _new()
    _add_tree(seen, tree)
    return seen.hexdigest()


def digest_of_sparse(matrix: Any) -> str:
    """Return a digest of a CSR matrix, from all of its entries and their places."""
    parts = map(digest_of_array, (matrix.indptr, matrix.indices, matrix.data))
    return digest_of_texts([repr(matrix.shape), *parts])


def digest_of_blocks(source: Source) -> str | None:
    """Return a digest of all rows and weights of a source, by one pass over it.

    None where a pass would use up the rows that a fit needs.
    """
    if not source.again:
        return None
    seen = _new()
    width = source.shape[1] * np.dtype(source.dtype).itemsize
    for block in source.blocks(0, max(AT_ONCE // max(width, 1), 1)):
        if source.sparse:
            seen.update(digest_of_sparse(block.values).encode())
        else:
            _add(seen, np.asarray(block.values))
        if block.weights is not None:
            _add(seen, np.asarray(block.weights))
    return seen.hexdigest()


def digest_of_files(paths: Iterable[str]) -> str:
    """Return a digest of files, here or at addresses that fsspec knows.

    Files of up to `WHOLE` bytes are read in full. Of a larger one the size and pieces at even distances count:
    a change between two of them shows only in the file's time.
    """
    seen = _new()
    for path in paths:
        for piece in _remote_pieces(path) if "://" in path else _local_pieces(path):
            seen.update(piece)
    return seen.hexdigest()


def digest_of_texts(texts: Sequence[str]) -> str:
    """Return one digest for several texts, in their order."""
    seen = _new()
    for text in texts:
        seen.update(f"{len(text)} {text}".encode())
    return seen.hexdigest()


def combined(digests: Sequence[str | None]) -> str | None:
    """Return one digest for several, or None where one of them is missing."""
    known = [one for one in digests if one is not None]
    return digest_of_texts(known) if len(known) == len(digests) else None


def _new() -> Any:
    return hashlib.blake2b(digest_size=16)


def _add(seen: Any, array: np.ndarray) -> None:
    """Add an array; one that does not lie in order is made contiguous some rows at a time."""
    seen.update(f"{array.dtype.str} {array.dtype} {array.shape} ".encode())
    rows = array.reshape(1, -1) if array.ndim == 0 else array
    step = max(AT_ONCE // max(array[:1].nbytes, 1), 1) if array.ndim else 1
    for begin in range(0, len(rows), step):
        seen.update(np.ascontiguousarray(rows[begin : begin + step]).reshape(-1).view(np.uint8))


def _add_tree(seen: Any, tree: Any) -> None:
    if isinstance(tree, dict) or hasattr(tree, "items"):
        for name, part in tree.items():
            seen.update(f"{name!r}: ".encode())
            _add_tree(seen, part)
    elif isinstance(tree, (list, tuple)):
        seen.update(f"{len(tree)} parts ".encode())
        for part in tree:
            _add_tree(seen, part)
    elif hasattr(tree, "detach"):
        from eigengame.sources.iterators import tensor_to_numpy

        seen.update(f"{tree.dtype} ".encode())
        _add(seen, tensor_to_numpy(tree))
    elif hasattr(tree, "shape"):
        _add(seen, np.asarray(tree))
    else:
        seen.update(repr(tree).encode())


def _places(size: int, *, remote: bool) -> Iterator[tuple[int, int]]:
    """Give the ranges of bytes of a file that are digested."""
    if size <= WHOLE:
        for begin in range(0, size, AT_ONCE):
            yield begin, min(begin + AT_ONCE, size)
        return
    for begin in np.linspace(0, size - PIECE, PIECES[remote]).astype(np.int64).tolist():
        yield begin, begin + PIECE


def _local_pieces(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        yield f"{size} ".encode()
        for begin, end in _places(size, remote=False):
            file.seek(begin)
            yield file.read(end - begin)


def _remote_pieces(address: str) -> Iterator[bytes]:
    from eigengame.sources._remote_array import file_system

    files, inside = file_system(address)
    size = int(files.size(inside))
    yield f"{size} ".encode()
    for begin, end in _places(size, remote=True):
        yield files.cat_file(inside, start=begin, end=end)
