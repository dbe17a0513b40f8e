"""Digests of content: sources with equal digests have equal rows, whatever their names and file times.

They are computed only for a checkpoint, in pieces, so that memory use stays small.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from eigengame.sources._base import Source
from eigengame.sources._paths import file_system, is_remote

WHOLE = 2**26
"""Files of at most this size in bytes are read completely."""

PIECE = 2**16
"""Bytes of each sampled piece of a larger file."""

PIECES = {False: 1024, True: 64}
"""Number of evenly spaced pieces that are sampled from a larger file: local, and remote."""

STEP = 2**22
"""Bytes that are read, or made contiguous, at a time."""


def digest_of_array(array: Any) -> str:
    """Return a digest of dtype, shape and all numbers of an array."""
    digest = _new()
    _add_array(digest, np.asarray(array))
    return digest.hexdigest()


def digest_of_tree(tree: Any) -> str:
    """Return a digest of nested dicts, lists and tuples of arrays and plain values."""
    digest = _new()
    _add_tree(digest, tree)
    return digest.hexdigest()


def digest_of_sparse(matrix: Any) -> str:
    """Return a digest of all entries and indices of a CSR matrix."""
    parts = map(digest_of_array, (matrix.indptr, matrix.indices, matrix.data))
    return digest_of_texts([repr(matrix.shape), *parts])


def digest_of_blocks(source: Source) -> str | None:
    """Return a digest of all rows and weights of a source; None if it can only be read once."""
    if not source.again:
        return None
    digest = _new()
    row_bytes = source.shape[1] * np.dtype(source.dtype).itemsize
    for block in source.blocks(0, max(STEP // max(row_bytes, 1), 1)):
        if source.sparse:
            digest.update(digest_of_sparse(block.values).encode())
        else:
            _add_array(digest, np.asarray(block.values))
        if block.weights is not None:
            _add_array(digest, np.asarray(block.weights))
    return digest.hexdigest()


def digest_of_files(paths: Iterable[str]) -> str:
    """Return a digest of local or remote files.

    Files of at most `WHOLE` bytes are read completely. Of a larger file the size and evenly spaced pieces
    are used: a change between two pieces is visible only in the file's time.
    """
    digest = _new()
    for path in paths:
        for piece in _remote_pieces(path) if is_remote(path) else _local_pieces(path):
            digest.update(piece)
    return digest.hexdigest()


def digest_of_texts(texts: Sequence[str]) -> str:
    """Return one digest of several texts, in order."""
    digest = _new()
    for text in texts:
        digest.update(f"{len(text)} {text}".encode())
    return digest.hexdigest()


def combine_digests(digests: Sequence[str | None]) -> str | None:
    """Return one digest of several digests; None if one of them is None."""
    known = [one for one in digests if one is not None]
    return digest_of_texts(known) if len(known) == len(digests) else None


def _new() -> Any:
    return hashlib.blake2b(digest_size=16)


def _add_array(digest: Any, array: np.ndarray) -> None:
    """Add an array. A few rows at a time are made contiguous."""
    digest.update(f"{array.dtype.str} {array.dtype} {array.shape} ".encode())
    rows = array.reshape(1, -1) if array.ndim == 0 else array
    step = max(STEP // max(array[:1].nbytes, 1), 1) if array.ndim else 1
    for begin in range(0, len(rows), step):
        digest.update(np.ascontiguousarray(rows[begin : begin + step]).reshape(-1).view(np.uint8))


def _add_tree(digest: Any, tree: Any) -> None:
    if isinstance(tree, dict) or hasattr(tree, "items"):
        for name, part in tree.items():
            digest.update(f"{name!r}: ".encode())
            _add_tree(digest, part)
    elif isinstance(tree, (list, tuple)):
        digest.update(f"{len(tree)} parts ".encode())
        for part in tree:
            _add_tree(digest, part)
    elif hasattr(tree, "detach"):
        from eigengame.sources.iterators import tensor_to_numpy

        digest.update(f"{tree.dtype} ".encode())
        _add_array(digest, tensor_to_numpy(tree))
    elif hasattr(tree, "shape"):
        _add_array(digest, np.asarray(tree))
    else:
        digest.update(repr(tree).encode())


def _ranges(size: int, *, remote: bool) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes of a file that are used."""
    if size <= WHOLE:
        for begin in range(0, size, STEP):
            yield begin, min(begin + STEP, size)
        return
    for begin in np.linspace(0, size - PIECE, PIECES[remote]).astype(np.int64).tolist():
        yield begin, begin + PIECE


def _local_pieces(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        yield f"{size} ".encode()
        for begin, end in _ranges(size, remote=False):
            file.seek(begin)
            yield file.read(end - begin)


def _remote_pieces(address: str) -> Iterator[bytes]:
    files, inside = file_system(address)
    size = int(files.size(inside))
    yield f"{size} ".encode()
    for begin, end in _ranges(size, remote=True):
        yield files.cat_file(inside, start=begin, end=end)
