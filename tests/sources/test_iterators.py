"""Iterables of arrays: read once or several times, in pieces of any length, and errors."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from eigengame import prepare
from eigengame.sources import SourceError, as_source
from eigengame.sources.iterators import IteratorSource
from tests.sources.tables import assert_same_blocks, error_of, rows_read

X = np.random.default_rng(0).normal(size=(37, 5))
PIECES = [X[:3], X[3:3], X[3:20], X[20:21], X[21:]]


def all_rows(data):
    return rows_read(as_source(data))


def test_a_list_of_arrays_is_read_again_from_any_row():
    source = as_source(PIECES)
    assert source.again
    assert source.shape == (None, 5)
    assert_same_blocks(source, X)


def test_a_generator_is_read_once_and_its_first_piece_is_not_lost():
    source = as_source(piece for piece in PIECES)
    assert not source.again
    np.testing.assert_array_equal(rows_read(source), X)
    with pytest.raises(SourceError, match="can be read once, and was"):
        rows_read(source)


def test_a_generator_can_begin_at_a_row():
    np.testing.assert_array_equal(rows_read(as_source(iter(PIECES)), start=19), X[19:])


def test_an_object_whose_iter_starts_again_is_read_again():
    class Pieces:
        def __iter__(self):
            return iter(PIECES)

    assert_same_blocks(as_source(Pieces()), X)


def test_nothing_is_read_ahead_of_the_blocks():
    drawn = []

    def pieces():
        for start in range(0, 30, 10):
            drawn.append(start)
            yield X[start : start + 10]

    blocks = as_source(pieces()).blocks(0, 10)
    next(blocks)
    assert drawn == [0]


def test_rows_may_come_one_by_one_as_vectors_or_pairs_with_a_label():
    np.testing.assert_array_equal(all_rows(iter(list(X))), X)
    np.testing.assert_array_equal(all_rows((row, 3) for row in X), X)
    np.testing.assert_array_equal(
        all_rows((X[i : i + 4], np.arange(4)) for i in range(0, 36, 4)), X[:36]
    )
    np.testing.assert_array_equal(
        all_rows([X[i : i + 4], np.arange(4)] for i in range(0, 36, 4)), X[:36]
    )


def test_a_list_of_vectors_in_a_piece_is_all_of_its_rows():
    np.testing.assert_array_equal(all_rows(iter([list(X[:20]), list(X[20:])])), X)


def test_nested_lists_and_images_are_taken_as_rows():
    np.testing.assert_array_equal(all_rows(iter([X[:9].tolist(), X[9:].tolist()])), X)
    pictures = np.arange(4 * 3 * 2 * 2).reshape(4, 3, 2, 2)
    np.testing.assert_array_equal(all_rows(iter([pictures])), pictures.reshape(4, 12))


def test_sparse_pieces_of_any_format_stay_sparse():
    counts = sparse.random(37, 5, density=0.3, format="csr", random_state=0)
    source = as_source([counts[:11].tocsc(), counts[11:].tocoo()])
    assert source.sparse
    assert_same_blocks(source, counts.toarray())


def test_pandas_chunks_are_a_stream(tmp_path):
    pd = pytest.importorskip("pandas")
    quarters = np.round(4 * X) / 4
    pd.DataFrame(quarters).to_csv(tmp_path / "x.csv", index=False)
    chunks = pd.read_csv(tmp_path / "x.csv", chunksize=10)
    source = as_source(chunks)
    assert source.feature_names == ["0", "1", "2", "3", "4"]
    np.testing.assert_array_equal(rows_read(source), quarters)
    again = pd.read_csv(tmp_path / "x.csv", chunksize=10)
    assert "usecols" in error_of(as_source, again, columns=["0"])
    again.close()


def test_an_empty_stream_is_refused():
    assert "no rows" in error_of(as_source, iter([]))


def test_a_first_piece_without_features_is_refused():
    assert "no features" in error_of(as_source, iter([np.empty((3, 0))]))


def test_a_change_of_width_is_reported_with_the_row():
    source = as_source([X[:10], X[:5, :4]])
    with pytest.raises(
        SourceError, match=r"first rows have 5 features, but the piece at row 10 .*\(5, 4\)"
    ):
        rows_read(source)


def test_rows_before_a_change_of_width_are_read():
    blocks = as_source([X[:10], X[:5, :4]]).blocks(0, 10)
    np.testing.assert_array_equal(next(blocks).values, X[:10])
    with pytest.raises(SourceError):
        next(blocks)


@pytest.mark.parametrize(
    "odd", ["abc", ["a", "b"], np.array([["a", "b"]]), {"a": 1}, None, object()]
)
def test_data_that_is_not_numeric_is_refused(odd):
    with pytest.raises(SourceError, match="numbers"):
        as_source(iter([odd]))
    source = IteratorSource(iter([X[:4], odd]), "my stream")
    with pytest.raises(SourceError, match=r"my stream: the piece at row 4 has dtype"):
        rows_read(source)


def test_ragged_lists_are_reported_with_the_row():
    source = as_source(iter([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0]]]))
    with pytest.raises(SourceError, match=r"at row 2 .* rows of one length"):
        rows_read(source)


def test_single_numbers_are_refused():
    assert "piece at row 0 is a single number" in error_of(as_source, iter([1.0, 2.0]))


def test_sparse_and_dense_pieces_do_not_mix():
    with pytest.raises(SourceError, match="first piece is dense, but the one at row 4 is sparse"):
        rows_read(as_source([X[:4], sparse.csr_array(X[4:])]))
    with pytest.raises(SourceError, match="first piece is sparse, but the one at row 4 is dense"):
        rows_read(as_source([sparse.csr_array(X[:4]), X[4:]]))


def test_an_error_in_the_stream_itself_is_not_hidden():
    def broken():
        yield X[:4]
        raise RuntimeError("the sensor fell off")

    with pytest.raises(RuntimeError, match="sensor"):
        rows_read(as_source(broken()))


class OtherArray:
    """An array of another library, for example xarray."""

    def __init__(self, array):
        self._array, self.shape, self.ndim = array, array.shape, array.ndim
        self.dtype = array.dtype

    def __iter__(self):
        return iter(self._array)


@pytest.mark.parametrize("make", [np.asarray, OtherArray, jnp.asarray, lambda x: x.tolist()])
def test_arrays_with_more_than_two_axes_are_refused_with_reshape_as_the_fix(make):
    deep = make(X.reshape(37, 5, 1))
    for read in (as_source, prepare):
        with pytest.raises(SourceError, match=r"shape \(37, 5, 1\).*reshape\(len\(x\), -1\)"):
            read(deep)


def test_an_array_of_another_library_is_read_row_by_row():
    np.testing.assert_array_equal(all_rows(OtherArray(X)), X)
    with pytest.raises(SourceError, match=r"shape \(37,\).*reshape\(1, -1\)"):
        as_source(OtherArray(X[:, 0]))


def test_options_for_an_open_source_are_refused():
    source = as_source(X)
    assert as_source(source) is source
    with pytest.raises(SourceError, match="is a source already: give columns when it is opened"):
        as_source(source, columns=[0])
