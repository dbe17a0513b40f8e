"""Checks for sources of arrays, and the location of real data."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from eigengame.solver.rows.batches import Batches
from eigengame.sources import RandomAccess

FOLDER = Path(os.environ.get("EIGENGAME_DATA", Path(__file__).parents[3] / "shared" / "data"))


def real(path):
    """Return the path of a real data file, or skip the test."""
    if not (FOLDER / path).exists():
        pytest.skip(f"{path} is not in {FOLDER}: set EIGENGAME_DATA to the folder that holds it")
    return FOLDER / path


def dense(values):
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def assert_same_rows(source, truth, sizes=(1, 5, 8, 16, 1000)):
    """Check shape, dtype, and the rows from several start rows in blocks of several sizes."""
    n = len(truth)
    assert source.shape == truth.shape
    assert source.dtype == truth.dtype
    for start in (0, 1, 8, n // 2, n - 1, n):
        for size in sizes:
            blocks = list(source.blocks(start, size))
            lengths = [min(size, n - begin) for begin in range(start, n, size)]
            assert [len(block) for block in blocks] == lengths
            assert all(block.values.dtype == truth.dtype for block in blocks)
            found = [dense(block.values) for block in blocks] or [truth[:0]]
            np.testing.assert_array_equal(np.concatenate(found), truth[start:])
    if isinstance(source, RandomAccess):
        some = (n // 4, n // 2 + 1), (truth.shape[1] // 3, truth.shape[1])
        found = source.read_columns(*some[0], *some[1])
        assert found.dtype == truth.dtype
        np.testing.assert_array_equal(dense(found), truth[slice(*some[0]), slice(*some[1])])


def assert_read_on_a_thread(source, truth):
    """Check the batches of a fit, which are read ahead on a thread, in two passes."""
    feed = Batches(source, 8, np.dtype("float64"))
    for _ in range(2):
        found = np.concatenate([np.asarray(batch.rows.dense()) for batch in feed()])
        np.testing.assert_array_equal(found[: len(truth)], truth)
