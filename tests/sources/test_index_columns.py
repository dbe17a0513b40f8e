"""Index columns that pandas stores in files: left out, with a warning, unless they are named."""

import json
import warnings

import numpy as np
import pytest

from eigengame.sources import ColumnWarning, as_source
from tests.sources.tables import assert_same_blocks, error_of, rows_read

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feathers = pytest.importorskip("pyarrow.feather")

X = np.random.default_rng(0).normal(size=(37, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
KEPT = X[:, 0] > 0
SUBSET = FRAME[KEPT]


def dated():
    return FRAME.set_index(pd.date_range("2020-01-01", periods=37))


def as_parquet(frame, path):
    frame.to_parquet(path)
    return path


def as_feather(frame, path):
    feathers.write_feather(pa.Table.from_pandas(frame), str(path))
    return path


def as_stream(frame, path):
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


def as_csv(frame, path):
    frame.to_csv(path)
    return path


WRITERS = {
    "x.parquet": as_parquet,
    "x.feather": as_feather,
    "y.arrow": as_stream,
    "x.csv": as_csv,
    "x.csv.gz": as_csv,
    "x.tsv": lambda frame, path: frame.to_csv(path, sep="\t") or path,
}
each_file = pytest.mark.parametrize("file", WRITERS)
binary_file = pytest.mark.parametrize("file", ["x.parquet", "x.feather", "y.arrow"])


def opened(data, name=None, **options):
    """Return the source of data, and check that it warns about the omitted column."""
    with pytest.warns(ColumnWarning) as seen:
        source = as_source(data, **options)
    (message,) = {str(one.message) for one in seen}
    assert "left out" in message
    assert "columns=" in message
    if name is not None:
        assert repr(name) in message
    return source


# ---------------------------------------------------------------- files


@each_file
def test_the_index_of_a_filtered_frame_is_left_out(tmp_path, file):
    source = opened(WRITERS[file](SUBSET, tmp_path / file))
    assert source.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(rows_read(source), X[KEPT])


@each_file
@pytest.mark.parametrize("index", ["dates", "text", "shuffled"])
def test_dates_text_and_shuffled_numbers_are_indexes(tmp_path, file, index):
    frame = {
        "dates": dated(),
        "text": FRAME.set_index(pd.Index([f"row {i}" for i in range(37)])),
        "shuffled": FRAME.set_index(pd.Index(np.random.default_rng(1).permutation(37))),
    }[index]
    assert_same_blocks(opened(WRITERS[file](frame, tmp_path / file)), X, sizes=(16,))


@binary_file
def test_a_named_index_is_left_out_by_the_metadata_of_pandas(tmp_path, file):
    frame = FRAME.set_index("b")
    source = opened(WRITERS[file](frame, tmp_path / file), "b")
    assert source.feature_names == ["a", "c"]
    np.testing.assert_array_equal(rows_read(source), X[:, [0, 2]])


@binary_file
def test_every_level_of_an_index_is_left_out_and_named(tmp_path, file):
    frame = FRAME.set_index([pd.Index(np.arange(37) // 2, name="day"), pd.Index(["x"] * 37)])
    with pytest.warns(ColumnWarning, match="'day', '__index_level_1__'"):
        source = as_source(WRITERS[file](frame, tmp_path / file))
    assert source.feature_names == ["a", "b", "c"]


@binary_file
def test_a_range_index_is_not_a_column_and_gives_no_warning(tmp_path, file):
    assert_same_blocks(as_source(WRITERS[file](FRAME, tmp_path / file)), X, sizes=(16,))


@each_file
def test_an_index_named_in_columns_is_a_feature(tmp_path, file):
    path = WRITERS[file](SUBSET, tmp_path / file)
    label = "" if "sv" in file else "__index_level_0__"
    source = as_source(path, columns=[label, "a"])
    expected = np.column_stack([np.flatnonzero(KEPT), X[KEPT, 0]])
    np.testing.assert_array_equal(rows_read(source), expected)
    weighted = as_source(path, weights=label)
    assert weighted.feature_names == ["a", "b", "c"]


@binary_file
def test_a_frame_without_columns_beside_the_index_is_refused(tmp_path, file):
    path = WRITERS[file](FRAME.set_index(["a", "b", "c"]), tmp_path / file)
    message = error_of(as_source, path)
    assert "pandas index" in message
    assert "columns=" in message


@binary_file
def test_lists_beside_an_index_are_the_rows(tmp_path, file):
    frame = pd.DataFrame({"row": list(X)})[KEPT]
    source = opened(WRITERS[file](frame, tmp_path / file), "__index_level_0__")
    np.testing.assert_array_equal(rows_read(source), X[KEPT])


def test_files_of_a_folder_may_differ_in_their_index(tmp_path):
    FRAME[:20].to_parquet(tmp_path / "0.parquet")
    FRAME[20:].set_index(pd.Index([9, 3, *range(40, 55)])).to_parquet(tmp_path / "1.parquet")
    assert_same_blocks(opened(tmp_path, "__index_level_0__"), X, sizes=(16,))


def test_index_names_of_dask_and_of_rewritten_files_are_left_out(tmp_path):
    plain = pa.table({"a": X[:, 0], "__null_dask_index__": np.arange(37)})
    pq.write_table(plain, tmp_path / "dask.parquet")
    assert opened(tmp_path / "dask.parquet").feature_names == ["a"]
    twice = pa.table({"Unnamed: 0": np.arange(37), "a": X[:, 0]})
    pq.write_table(twice, tmp_path / "twice.parquet")
    assert opened(tmp_path / "twice.parquet", "Unnamed: 0").feature_names == ["a"]
    fractions = pa.table({"Unnamed: 0": X[:, 1], "a": X[:, 0]})
    assert as_source(fractions).feature_names == ["Unnamed: 0", "a"]


@pytest.mark.parametrize("about", [b"{", b"\xff", b"[]", b'{"index_columns": "a"}'])
def test_invalid_metadata_is_ignored(about):
    table = pa.table({"a": X[:, 0], "b": X[:, 1]}).replace_schema_metadata({b"pandas": about})
    assert as_source(table).feature_names == ["a", "b"]


# ---------------------------------------------------------------- tables in memory


def test_arrow_tables_made_from_pandas_leave_the_index_out():
    table = pa.Table.from_pandas(SUBSET)
    assert_same_blocks(opened(table, "__index_level_0__"), X[KEPT], sizes=(16,))
    assert opened(table.to_reader()).feature_names == ["a", "b", "c"]
    bare = table.replace_schema_metadata(None)
    assert opened(bare).feature_names == ["a", "b", "c"]


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_frames_made_from_pandas_leave_the_index_out(lazy):
    frame = pl.from_arrow(pa.Table.from_pandas(SUBSET))
    source = opened(frame.lazy() if lazy else frame, "__index_level_0__")
    np.testing.assert_array_equal(rows_read(source), X[KEPT])


def test_pandas_frames_with_a_column_of_that_name_leave_it_out():
    frame = FRAME.assign(__index_level_0__=np.arange(37))
    assert_same_blocks(opened(frame), X, sizes=(16,))


def test_a_frame_read_from_text_with_its_index_leaves_it_out():
    frame = pd.DataFrame({"Unnamed: 0": np.arange(37), **FRAME})
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert_same_blocks(opened(table, "Unnamed: 0"), X, sizes=(16,))
        kept = as_source(table, columns=["Unnamed: 0", "a"])
        assert kept.feature_names == ["Unnamed: 0", "a"]
    fractions = frame.astype({"Unnamed: 0": float})
    for table in (fractions, pl.from_pandas(fractions), pa.Table.from_pandas(fractions)):
        assert as_source(table).shape == (37, 4)


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow", "path", "text"])
def test_a_fit_leaves_the_index_out_of_every_kind_of_table(tmp_path, library):
    from eigengame import EigenGamePCA

    frame = pd.DataFrame(
        np.random.default_rng(2).normal(size=(120, 4)), columns=["a", "b", "c", "d"]
    )
    table = pa.Table.from_pandas(frame[frame.a > -1])
    frames = {
        "polars": lambda: pl.from_arrow(table),
        "pandas": lambda: table.to_pandas(ignore_metadata=True),
        "pyarrow": lambda: table,
        "text": lambda: pd.read_csv(as_csv(frame[frame.a > -1], tmp_path / "x.csv")),
        "path": lambda: as_parquet(frame[frame.a > -1], tmp_path / "x.parquet"),
    }
    data = frames[library]()
    with pytest.warns(ColumnWarning):
        pca = EigenGamePCA(2, random_state=0).fit(data)
    assert list(pca.feature_names_in_) == ["a", "b", "c", "d"]
    assert pca.explained_variance_[0] < 3  # with the index it would be above 1000
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ColumnWarning
        )  # a path is opened with the columns of the fit
        assert pca.transform(data).shape == (table.num_rows, 2)


# ---------------------------------------------------------------- text


@pytest.mark.parametrize("first", ["", "Unnamed: 0"])
def test_an_unnamed_first_column_of_increasing_numbers_is_an_index(tmp_path, first):
    for file, values in {"count.csv": range(37), "times.csv": np.arange(37) * 0.25}.items():
        lines = [f"{one},{a},{b}" for one, a, b in zip(values, X[:, 0], X[:, 1], strict=True)]
        (tmp_path / file).write_text("\n".join([f"{first},a,b", *lines]))
        source = opened(tmp_path / file, first)
        assert source.feature_names == ["a", "b"]
        np.testing.assert_array_equal(rows_read(source), X[:, :2])


def test_an_unnamed_first_column_of_other_numbers_is_refused_with_both_fixes(tmp_path):
    path = tmp_path / "x.csv"
    for values in (X[:, 2], np.arange(37) % 3):
        lines = [f"{one},{a}" for one, a in zip(values, X[:, 0], strict=True)]
        path.write_text("\n".join([",a", *lines]))
        message = error_of(as_source, path)
        assert "drop=['']" in message
        assert "columns=['', 'a']" in message
        assert as_source(path, drop=[""]).feature_names == ["a"]
        assert as_source(path, columns=["", "a"]).shape == (37, 2)


def test_a_column_without_a_name_that_is_not_the_first_is_a_feature(tmp_path):
    (tmp_path / "x.csv").write_text("a,,b\n1,0,2.5\n3,1,4.5\n")
    assert as_source(tmp_path / "x.csv").feature_names == ["a", "", "b"]


def test_a_first_column_that_counts_the_rows_without_names_gives_a_warning(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", header=False)
    with pytest.warns(ColumnWarning, match=r"column 0 counts the rows.*drop=\[0\]"):
        assert as_source(tmp_path / "x.csv").shape == (37, 4)
    assert_same_blocks(as_source(tmp_path / "x.csv", drop=[0]), X, sizes=(16,))
    assert as_source(tmp_path / "x.csv", columns=[0, 1]).shape == (37, 2)


def test_the_metadata_itself_names_the_index_of_a_frame():
    about = json.loads(pa.Table.from_pandas(SUBSET).schema.metadata[b"pandas"])
    assert about["index_columns"] == ["__index_level_0__"]
