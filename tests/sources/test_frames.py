"""Data frames: columns by name, nulls as NaN, weights from a column, and errors."""

import numpy as np
import pytest

from eigengame.sources import SourceError, as_source
from tests.sources.same_rows import assert_read_on_a_thread
from tests.sources.tables import assert_same_blocks, error_of, rows_read, same_fingerprint

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(37, 3))
WEIGHTS = RNG.integers(0, 4, size=37).astype(float)
NAMES = ["a", "b", "c"]


def columns_of(x=X, **more):
    return dict(zip(NAMES, x.T, strict=True)) | more


def as_pandas(columns):
    return pd.DataFrame({name: pd.Series(list(values)) for name, values in columns.items()})


def as_polars(columns):
    return pl.DataFrame({name: pl.Series(list(values)) for name, values in columns.items()})


def as_lazy(columns):
    return as_polars(columns).lazy()


def as_arrow(columns):
    return pa.table({name: pa.array(list(values)) for name, values in columns.items()})


def as_chunks(columns):
    table = as_arrow(columns)
    return pa.concat_tables([table.slice(i, 5) for i in range(0, table.num_rows, 5)])


def as_batch(columns):
    return as_arrow(columns).combine_chunks().to_batches()[0]


MAKERS = [as_pandas, as_polars, as_lazy, as_arrow, as_chunks, as_batch]
each_library = pytest.mark.parametrize("made", MAKERS)
in_memory = pytest.mark.parametrize("made", [as_pandas, as_polars, as_arrow])


@each_library
def test_rows_are_those_of_the_array_from_any_row(made):
    source = as_source(made(columns_of()))
    assert_same_blocks(source, X)
    assert source.feature_names == NAMES
    assert source.shape[0] == (None if made is as_lazy else 37)


@each_library
def test_frames_are_read_on_a_thread_and_again(made):
    assert_read_on_a_thread(as_source(made(columns_of())), X)


@each_library
def test_columns_are_chosen_by_name_in_the_given_order(made):
    frame = made(columns_of(text=["x"] * 37))
    source = as_source(frame, columns=["c", "a"])
    assert_same_blocks(source, X[:, [2, 0]])
    assert source.feature_names == ["c", "a"]
    assert as_source(frame, columns="b").feature_names == ["b"]


@each_library
def test_weights_come_from_a_column_that_is_not_a_feature(made):
    frame = made(columns_of(w=WEIGHTS))
    source = as_source(frame, weights="w")
    assert_same_blocks(source, X, WEIGHTS)
    assert source.feature_names == NAMES
    assert_same_blocks(as_source(frame, columns=["b", "w"], weights="w"), X[:, [1]], WEIGHTS)


@each_library
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_an_invalid_weight_is_reported_with_its_row(made, bad):
    weights = WEIGHTS.copy()
    weights[20] = bad
    with pytest.raises(SourceError, match="the weight of row 20 is"):
        list(as_source(made(columns_of(w=weights)), weights="w").blocks(8, 8))


@each_library
def test_a_column_of_text_is_refused_by_name_with_the_fix(made):
    message = error_of(as_source, made(columns_of(label=["x"] * 37)))
    assert "column 'label' holds" in message
    assert "columns=['a', 'b', 'c']" in message


@each_library
def test_an_unknown_column_is_reported_with_the_existing_ones(made):
    message = error_of(as_source, made(columns_of()), columns=["a", "nope"])
    assert "no column 'nope'" in message
    assert "'a', 'b', 'c'" in message
    assert "no column 'w'" in error_of(as_source, made(columns_of()), weights="w")


@each_library
def test_a_table_with_weights_only_is_refused(made):
    assert "no column is left" in error_of(as_source, made({"w": WEIGHTS}), weights="w")


@in_memory
def test_zero_rows_are_refused(made):
    assert "no rows" in error_of(as_source, made(columns_of())[:0])


@pytest.mark.parametrize("made", [as_polars, as_lazy, as_arrow, as_chunks])
def test_nulls_become_nan_and_integers_become_floats(made):
    values = [None if i % 5 == 0 else i for i in range(37)]
    truth = np.array([[np.nan if one is None else one, 2.0] for one in values])
    assert_same_blocks(as_source(made({"a": values, "b": [2.0] * 37})), truth)


def test_pandas_missing_values_of_every_type_become_nan():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], "Int64"),
            "short": pd.array([1, 2, None], "UInt8"),
            "truth": pd.array([True, None, False], "boolean"),
            "float": [1.5, np.nan, 2.5],
        }
    )
    nan = np.nan
    truth = np.array([[1, 1, 1, 1.5], [nan, 2, nan, nan], [3, nan, 0, 2.5]])
    np.testing.assert_array_equal(rows_read(as_source(frame)), truth)
    assert as_source(frame[["short", "truth"]]).dtype == np.float32


def test_pandas_arrow_backed_columns_are_read():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], "int64[pyarrow]"), "b": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(rows_read(as_source(frame)), [[1, 1], [np.nan, 2], [3, 3]])


@pytest.mark.parametrize("kind", ["uint8", "int16", "int64", "float32", "float64"])
@in_memory
def test_numbers_without_nulls_keep_their_dtype(made, kind):
    x = np.arange(74).reshape(37, 2).astype(kind)
    arrays = {"a": x[:, 0], "b": x[:, 1]}
    frame = {as_pandas: pd.DataFrame, as_polars: pl.DataFrame, as_arrow: pa.table}[made](arrays)
    assert_same_blocks(as_source(frame), x)


@in_memory
def test_booleans_are_zeros_and_ones(made):
    source = as_source(made({"a": [True, False, True], "b": [False, False, True]}))
    assert source.dtype == np.uint8
    np.testing.assert_array_equal(rows_read(source), [[1, 0], [0, 0], [1, 1]])


@in_memory
def test_columns_of_several_types_get_a_common_dtype(made):
    source = as_source(made({"a": [True, False], "b": [300, 400], "c": [0.5, 1.5]}))
    np.testing.assert_array_equal(rows_read(source), [[1, 300, 0.5], [0, 400, 1.5]])


def test_a_pandas_block_of_one_type_is_a_view_of_the_frame():
    frame = pd.DataFrame(X.copy(), columns=NAMES)
    assert np.shares_memory(next(as_source(frame).blocks(5, 9)).values, frame.to_numpy())


def test_pandas_labels_that_are_not_text_can_choose_columns():
    source = as_source(pd.DataFrame(X), columns=[2, 0])
    assert_same_blocks(source, X[:, [2, 0]])
    assert source.feature_names is None


def test_pandas_columns_of_one_name_are_all_features_but_cannot_be_chosen():
    frame = pd.DataFrame(X, columns=["a", "a", "b"])
    assert_same_blocks(as_source(frame), X)
    assert "2 columns called 'a'" in error_of(as_source, frame, columns=["a"])


def test_arrow_columns_of_one_name_are_refused():
    table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    assert "2 columns called 'a'" in error_of(as_source, table)


def test_a_subclass_of_a_frame_is_a_frame():
    class Mine(pd.DataFrame):
        pass

    assert_same_blocks(as_source(Mine(X, columns=NAMES)), X)


@pytest.mark.parametrize("series", [pd.Series([1.0]), pl.Series([1.0]), pa.array([1.0])])
def test_a_single_column_is_refused(series):
    assert "is not a table: give a DataFrame" in error_of(as_source, series)


# ---------------------------------------------------------------- lists as rows


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float64(), 3)])
def test_the_lists_of_a_column_are_rows(kind):
    table = pa.table({"id": ["x"] * 37, "row": pa.array(list(X), kind), "w": WEIGHTS})
    source = as_source(table, columns="row", weights="w")
    assert_same_blocks(source, X, WEIGHTS)
    assert source.feature_names is None
    message = error_of(as_source, table, weights="w")
    assert "column 'row' holds" in message
    assert "columns='row'" in message


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_lists_and_arrays_are_rows(lazy):
    for kind in (pl.List(pl.Float64), pl.Array(pl.Float64, 3)):
        frame = pl.DataFrame({"row": pl.Series(X.tolist(), dtype=kind)})
        assert_same_blocks(as_source(frame.lazy() if lazy else frame), X)


def test_null_lists_and_null_entries_become_nan():
    table = pa.table({"row": pa.array([None, [1, 2], [3, None]], pa.list_(pa.uint8()))})
    source = as_source(table)
    assert source.dtype == np.float32
    nan = np.nan
    np.testing.assert_array_equal(rows_read(source), [[nan, nan], [1, 2], [3, nan]])


def test_ragged_lists_are_reported_with_the_row():
    table = pa.table({"row": [[1.0, 2.0]] * 9 + [[1.0]]})
    with pytest.raises(SourceError, match="the list in row 9 of column 'row' has 1"):
        rows_read(as_source(table), size=4)


def test_lists_of_text_are_refused():
    assert "column 'row' holds list<" in error_of(as_source, pa.table({"row": [["a"], ["b"]]}))


def test_lists_without_any_are_refused():
    table = pa.table({"row": pa.array([None, None], pa.list_(pa.float32()))})
    assert "has no list in any row" in error_of(as_source, table)


def test_tensors_of_fixed_shape_are_rows():
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(X.reshape(37, 1, 3))
    assert_same_blocks(as_source(pa.table({"t": tensors})), X)


# ---------------------------------------------------------------- streams


def test_a_reader_of_batches_is_read_once():
    table = as_chunks(columns_of(w=WEIGHTS))
    source = as_source(table.to_reader(), weights="w")
    assert not source.again
    blocks = list(source.blocks(9, 16))
    np.testing.assert_array_equal(np.concatenate([block.values for block in blocks]), X[9:])
    np.testing.assert_array_equal(np.concatenate([block.weights for block in blocks]), WEIGHTS[9:])
    with pytest.raises(SourceError, match="can be read once, and was"):
        source.blocks(0, 4)


def test_a_reader_of_lists_yields_the_batches_used_to_find_their_length():
    table = pa.table({"row": pa.array([None, *X.tolist()], pa.list_(pa.float64()))})
    reader = table.to_reader(max_chunksize=1)
    np.testing.assert_array_equal(rows_read(as_source(reader))[1:], X)


def test_a_lazy_frame_is_collected_in_batches(tmp_path, monkeypatch):
    whole, heights = pl.LazyFrame.collect, []

    def collect(query, *args, **options):
        # Early versions of polars collect a query that ends in a sink, and that has no rows.
        frame = whole(query, *args, **options)
        heights.append(frame.height)
        return frame

    monkeypatch.setattr(pl.LazyFrame, "collect", collect)
    as_polars(columns_of()).write_parquet(tmp_path / "x.parquet")
    query = pl.scan_parquet(tmp_path / "x.parquet").filter(pl.col("a") > 0)
    assert_same_blocks(as_source(query), X[X[:, 0] > 0])
    assert not any(heights)


def test_a_failing_query_is_reported():
    lost = pl.scan_parquet("/nowhere/x.parquet")
    assert "the query cannot be run" in error_of(as_source, lost)
    broken = as_lazy({"a": ["1", "x"]}).select(pl.col("a").cast(pl.Float64))
    with pytest.raises(SourceError, match="the query failed"):
        rows_read(as_source(broken))


# ---------------------------------------------------------------- fingerprints


@each_library
def test_the_fingerprint_distinguishes_frames(made):
    one = as_source(made(columns_of()))
    assert same_fingerprint(one, as_source(made(columns_of())))
    assert not same_fingerprint(one, as_source(made(columns_of()), columns=["a", "b"]))
    weighted = made(columns_of(w=WEIGHTS))
    assert not same_fingerprint(one, as_source(weighted, weights="w"))
    if made is not as_lazy:  # a query has no rows before it runs
        assert not same_fingerprint(one, as_source(made(columns_of(X + 1))))
