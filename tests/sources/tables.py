"""Checks for sources of tables, which may have weights and an unknown number of rows."""

import json

import numpy as np

from eigengame.sources import SourceError
from tests.sources.same_rows import dense


def assert_same_blocks(source, truth, weights=None, sizes=(1, 7, 16, 1000)):
    """Check rows, weights and dtype from several start rows in blocks of several sizes; NaN equals NaN."""
    n = len(truth)
    assert source.shape[0] in (n, None)
    assert source.shape[1] == truth.shape[1]
    assert source.dtype == truth.dtype
    for start in (0, 1, 8, n // 2, n - 1, n):
        for size in sizes:
            blocks = list(source.blocks(start, size))
            assert [len(b) for b in blocks] == [min(size, n - i) for i in range(start, n, size)]
            found = [dense(block.values) for block in blocks]
            assert all(part.dtype == truth.dtype for part in found)
            np.testing.assert_array_equal(np.concatenate([truth[:0], *found]), truth[start:])
            if weights is not None and blocks:
                seen = np.concatenate([block.weights for block in blocks])
                np.testing.assert_array_equal(seen, weights[start:])


def rows_read(source, start=0, size=16):
    """Return all rows from a start row on as one array."""
    return np.concatenate([dense(block.values) for block in source.blocks(start, size)])


def same_fingerprint(source, other):
    """Return whether the fingerprints of two sources, which must be plain JSON, are equal."""
    return json.dumps(source.fingerprint()) == json.dumps(other.fingerprint())


def error_of(call, *arguments, **options):
    """Return the message of the SourceError that a call must raise."""
    try:
        call(*arguments, **options)
    except SourceError as error:
        return str(error)
    raise AssertionError("no SourceError was raised")
