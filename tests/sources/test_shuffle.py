"""Shuffled rows: a fixed order for each seed, from any row, without reading skipped blocks."""

import gzip

import numpy as np
import pytest
from scipy import sparse

from eigengame.sources import ArraySource, SourceError, SparseSource, as_source
from eigengame.sources.shuffle import shuffled
from tests.sources.same_rows import assert_read_on_a_thread, assert_same_rows

N, D = 37, 5
X = np.arange(N * D, dtype=np.float32).reshape(N, D)


class Watched(ArraySource):
    def __init__(self, data):
        super().__init__(data, "watched")
        self.asked = []

    def read(self, begin, end):
        self.asked.append((begin, end))
        return super().read(begin, end)


@pytest.mark.parametrize("block", [1, 4, 8, 37, 1000])
def test_every_row_appears_once_in_the_reported_order(block):
    source = shuffled(ArraySource(X), 3, block)
    order = source.order()
    assert sorted(order) == list(range(N))
    assert_same_rows(source, X[order])
    assert_read_on_a_thread(source, X[order])


def test_the_order_of_blocks_and_rows_depends_on_the_seed():
    orders = [shuffled(ArraySource(X), seed, 8).order() for seed in (0, 0, 1)]
    np.testing.assert_array_equal(orders[0], orders[1])
    assert (orders[0] != orders[2]).any()
    blocks = orders[0] // 8
    assert (blocks != np.sort(blocks)).any()
    within = [tuple(orders[0][blocks == number] % 8) for number in range(4)]
    assert len(set(within)) == 4
    assert all(rows != tuple(range(8)) for rows in within)


def test_blocks_before_the_cursor_are_not_read():
    source = Watched(X)
    mixed = shuffled(source, 0, 8)
    before = [np.array(block.values) for block in mixed.blocks(0, 4)]
    assert len(source.asked) == 5
    assert sorted(source.asked) == [(0, 8), (8, 16), (16, 24), (24, 32), (32, 37)]
    source.asked.clear()
    after = [block.values for block in mixed.blocks(28, 4)]
    assert len(source.asked) == 2
    np.testing.assert_array_equal(np.concatenate(after), np.concatenate(before)[28:])


def test_sparse_rows_names_and_shapes_are_kept():
    rows = sparse.csr_array(X * (X % 3 == 0))
    source = SparseSource(rows)
    source.feature_names = list("abcde")
    source.image_shape = (5, 1, 1)
    mixed = shuffled(source, 0, 8)
    assert mixed.sparse
    assert mixed.feature_names == list("abcde")
    assert mixed.image_shape == (5, 1, 1)
    assert_same_rows(mixed, rows.toarray()[mixed.order()])
    assert_read_on_a_thread(mixed, rows.toarray()[mixed.order()])


def test_blocks_are_whole_chunks_of_a_chunked_source(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(6, D))
    source = shuffled(as_source(tmp_path / "x.h5"), 0, 8)
    assert source.fingerprint()["shuffled"] == {"seed": 0, "block": 12}
    assert_same_rows(source, X[source.order()])


def test_the_fingerprint_has_seed_and_block():
    prints = [
        shuffled(ArraySource(X), seed, block).fingerprint()
        for seed, block in ((0, 8), (1, 8), (0, 4))
    ]
    assert prints[0] == shuffled(ArraySource(X), 0, 8).fingerprint()
    assert prints[0] != prints[1]
    assert prints[0] != prints[2]


def test_streams_and_invalid_block_sizes_are_refused(tmp_path):
    with pytest.raises(SourceError, match="cannot be shuffled"):
        shuffled(as_source([X, X]), 0)
    (tmp_path / "x.idx.gz").write_bytes(
        gzip.compress(b"\0\0\10\2" + bytes([0, 0, 0, 2] * 2) + b"abcd")
    )
    with pytest.raises(SourceError, match="cannot be shuffled"):
        shuffled(as_source(tmp_path / "x.idx.gz"), 0)
    with pytest.raises(SourceError, match="block=0"):
        shuffled(ArraySource(X), 0, 0)
