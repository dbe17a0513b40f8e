import numpy as np
import pytest
from scipy import sparse

from eigengame import SourceError, prepare
from eigengame.sources import ArraySource
from tests.preparation.reading import rows_of

X = np.arange(24.0).reshape(4, 6)


def named(x=X, names="abcdef"):
    source = ArraySource(x, "table")
    source.feature_names = list(names)
    return source


@pytest.mark.parametrize(
    "columns", [["d", "a"], [3, 0], [-3, 0], np.array([3, 0]), ("d", 0)], ids=str
)
def test_columns_are_selected_by_name_or_number_in_the_given_order(columns):
    prepared = prepare(named(), columns=columns)
    np.testing.assert_array_equal(rows_of(prepared, 3), X[:, [3, 0]])
    assert prepared.feature_names == ["d", "a"]
    assert prepared.shape == (4, 2)


def test_columns_can_be_given_as_a_mask():
    marks = np.array([True, False, False, True, False, True])
    np.testing.assert_array_equal(rows_of(prepare(X, columns=marks)), X[:, marks])
    with pytest.raises(SourceError, match=r"2 values, but X has 6 features"):
        prepare(X, columns=[True, False])


def test_sparse_rows_stay_sparse():
    prepared = prepare(sparse.csr_array(X), columns=[5, 1])
    assert prepared.sparse
    assert all(sparse.issparse(block.values) for block in prepared.blocks(0, 3))
    np.testing.assert_array_equal(rows_of(prepared, 3), X[:, [5, 1]])


def test_the_rows_of_the_source_are_never_written_to():
    frozen = X.copy()
    frozen.flags.writeable = False
    prepared = prepare(frozen, columns=[0, 1, 2, 3, 4, 5], counts="log-normalise", scale="two-pass")
    assert rows_of(prepared).shape == X.shape
    np.testing.assert_array_equal(frozen, X)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a", "who", "why"], r"table has no 'who', 'why' among its 6 features \('a', 'b', "),
        ([0, 6, -7], r"has no 6, -7 among its 6 features"),
        ([], "columns is empty"),
        ("abc", "give a list of columns"),
        ([1.5], r"columns contains 1\.5: give names or integers"),
    ],
)
def test_unknown_columns_are_reported(columns, message):
    with pytest.raises(SourceError, match=message):
        prepare(named(), columns=columns)


def test_a_name_must_exist_and_be_unique():
    with pytest.raises(SourceError, match=r"has no 'a' among its 6 features, which have no names"):
        prepare(X, columns=["a"])
    with pytest.raises(SourceError, match=r"several columns called 'a': give their numbers"):
        prepare(named(names="aabcde"), columns=["a"])


def test_a_table_reads_only_the_selected_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2], "who": ["x", "y"], "b": [3.0, 4]})
    prepared = prepare(frame, columns=["b", "a"])
    np.testing.assert_array_equal(rows_of(prepared), [[3, 1], [4, 2]])
    np.testing.assert_array_equal(rows_of(prepared.preparation.over(frame)), [[3, 1], [4, 2]])
