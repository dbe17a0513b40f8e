"""From blocks to batches to folds: shapes, order, weights, pace, errors, watchers."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame._system.read_ahead import read_ahead
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.frame import Frame
from eigengame.sources import Block, InOrder, as_source
from eigengame.sources._base import rechunk

N, D = 37, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
SPARSE = sparse.random_array(
    (N, D), density=0.4, random_state=np.random.default_rng(1), format="csr"
)


def dense(batch):
    return np.asarray(batch.rows.dense())


class Ragged(InOrder):
    """Rows in pieces of random length."""

    name, shape, dtype = "ragged", (None, D), np.dtype("float64")

    def __init__(self, seed):
        self.seed = seed

    def pieces(self):
        cuts = np.sort(np.random.default_rng(self.seed).integers(0, N, 6))
        return np.split(X, cuts)


@given(st.integers(0, 10_000), st.integers(0, N), st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_a_stream_in_any_pieces_is_recut_from_any_row(seed, start, size):
    blocks = list(Ragged(seed).blocks(start, size))
    assert all(len(block) == size for block in blocks[:-1])
    found = np.concatenate([block.values for block in blocks]) if blocks else np.empty((0, D))
    np.testing.assert_array_equal(found, X[start:])


def test_weights_and_sparse_rows_survive_a_rechunk():
    pieces = [Block(SPARSE[:10], np.arange(10.0)), Block(SPARSE[10:])]
    blocks = list(rechunk(pieces, 3, 8))
    found = sparse.vstack([block.values for block in blocks])
    assert (found != SPARSE[3:]).nnz == 0
    np.testing.assert_array_equal(blocks[0].weights, [3, 4, 5, 6, 7, 8, 9, 1])
    assert blocks[1].weights is None


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_batches_have_one_shape_and_padding_counts_nothing(depth):
    batches = list(Batches(as_source(X), 8, np.dtype("float64"), ahead=depth)())
    assert [batch.read for batch in batches] == [8, 8, 8, 8, 5]
    assert {dense(batch).shape for batch in batches} == {(8, D)}
    found = np.concatenate([dense(batch) for batch in batches])
    np.testing.assert_array_equal(found[:N], X)
    assert not found[N:].any()
    np.testing.assert_array_equal(np.asarray(batches[-1].rows.constant())[:, 0], [1] * 5 + [0] * 3)


def test_sparse_batches_on_the_host_are_not_padded():
    batches = list(Batches(as_source(SPARSE), 8, np.dtype("float64"))())
    assert [batch.read for batch in batches] == [8, 8, 8, 8, 5]
    assert [len(dense(batch)) for batch in batches] == [8, 8, 8, 8, 5]
    found = np.concatenate([dense(batch) for batch in batches])
    np.testing.assert_array_equal(found, SPARSE.toarray())


def test_weights_origin_and_cursor_reach_the_rows():
    weights, origin = np.arange(N) % 3 * 1.0, np.full(D, 2.0)
    feed = Batches(as_source(X), 8, np.dtype("float64"), weights, Frame(origin))
    found = np.concatenate([dense(batch) for batch in feed(10)])[: N - 10]
    np.testing.assert_allclose(found, np.sqrt(weights[10:, None]) * (X[10:] - 2), atol=1e-14)


def test_integers_are_transferred_as_they_are():
    sent = []
    plain = jax.device_put

    def noted(array, *rest):
        sent.append(np.asarray(array).dtype)
        return plain(array, *rest)

    image = RNG.integers(0, 255, (N, D)).astype(np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "device_put", noted)
        batches = list(Batches(as_source(image), 8, np.dtype("float32"), ahead=0)())
    assert np.uint8 in sent
    assert np.float64 not in sent
    assert dense(batches[0]).dtype == np.float32
    np.testing.assert_array_equal(dense(batches[0]), image[:8])


def test_reading_ahead_is_bounded():
    drawn, most = [], 2

    def items():
        for i in range(20):
            drawn.append(i)
            yield i

    for seen, item in enumerate(read_ahead(items(), most)):
        time.sleep(0.002)
        # Those waiting, the one being handed over, and the one in hand.
        assert len(drawn) <= seen + 1 + most + 1
        assert item == seen
    assert len(drawn) == 20


def test_an_error_while_reading_is_raised_after_what_came_before_it():
    def items():
        yield 1
        raise OSError("disk on fire")

    got = read_ahead(items(), 2)
    assert next(got) == 1
    with pytest.raises(OSError, match="disk on fire"):
        next(got)


def test_whoever_stops_listening_stops_the_reader():
    before = threading.active_count()
    got = read_ahead(iter(range(1000)), 2)
    next(got)
    got.close()
    assert threading.active_count() == before


def summed(carry, rows, count):
    total, seen = carry
    return total + jnp.sum(rows.dense(), axis=0), seen + count


START = (jnp.zeros(D), 0)


def test_a_fold_takes_every_row_once():
    total, seen = SourcePasses(Batches(as_source(X), 8, np.dtype("float64"))).fold(
        summed, START, task="sum"
    )
    assert seen == N
    np.testing.assert_allclose(total, X.sum(axis=0), atol=1e-12)


def test_rows_of_weight_zero_in_a_block_are_read_but_not_counted():
    class Skipping(InOrder):
        name, shape, dtype = "skipping", (None, D), np.dtype("float64")

        def pieces(self):
            return [Block(X, (np.arange(N) % 2).astype(float))]

    total, seen = SourcePasses(Batches(Skipping(), 8, np.dtype("float64"))).fold(
        summed, START, task="sum"
    )
    assert seen == N // 2
    np.testing.assert_allclose(total, X[1::2].sum(axis=0), atol=1e-12)


def test_a_stream_that_can_be_read_once_says_so_at_the_second_pass():
    reading = SourcePasses(Batches(as_source(iter([X])), 8, np.dtype("float64")))
    reading.fold(summed, START, task="sum")
    with pytest.raises(ValueError, match=r"can be read once.*passes=1"):
        reading.fold(summed, START, task="sum")


def test_watchers_are_called_after_each_batch_and_can_stop_a_pass_with_figures():
    class Noting:
        def __init__(self, stop_at=None):
            self.heard, self.stop_at = [], stop_at

        def batch(self, at):
            self.heard.append((at.task, at.number, at.rows, at.total, at.ended, at.tell()))
            return self.stop_at is not None and at.rows >= self.stop_at

    def tell(carry):
        return {"rows": carry[1]}

    watcher = Noting()
    reading = SourcePasses(Batches(as_source(X), 16, np.dtype("float64")), [watcher])
    reading.fold(summed, START, task="sum", report=tell)
    assert watcher.heard == [
        ("sum", 1, 16, N, False, {"rows": 16}),
        ("sum", 1, 32, N, False, {"rows": 32}),
        ("sum", 1, N, N, False, {"rows": N}),
        ("sum", 1, N, N, True, {"rows": N}),
    ]
    for can_end, seen in ((tell, 16), (None, N)):
        reading = SourcePasses(Batches(as_source(X), 16, np.dtype("float64")), [Noting(stop_at=10)])
        assert reading.fold(summed, START, task="sum", report=can_end)[1] == seen
        assert reading.stopped
