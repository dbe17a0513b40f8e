"""Text tables: detection of names and delimiters, rows in chunks, and errors that name the line."""

import gzip

import numpy as np
import pytest

from eigengame.sources import ColumnWarning, SourceError, as_source, csv
from eigengame.sources.csv import CsvSource
from tests.sources.same_rows import assert_read_on_a_thread
from tests.sources.tables import assert_same_blocks, error_of, rows_read, same_fingerprint

pytest.importorskip("pyarrow")

X = np.random.default_rng(0).normal(size=(37, 3))
WEIGHTS = np.arange(37.0) % 4


def lines(x=X, delimiter=","):
    return [delimiter.join(repr(float(one)) for one in row) for row in x]


def text(*more, x=X, delimiter=","):
    return "\n".join([*more, *lines(x, delimiter)]) + "\n"


def written(path, content):
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def small_chunks(monkeypatch):
    """Parse in small chunks."""
    monkeypatch.setattr(csv, "CHUNK", 256)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_rows_are_those_of_the_array_from_any_row(tmp_path, small_chunks, name):
    source = as_source(written(tmp_path / name, text("a,b,c")))
    assert_same_blocks(source, X)
    assert_read_on_a_thread(source, X)
    assert source.feature_names == ["a", "b", "c"]
    assert source.again


def test_the_rows_of_small_plain_files_are_counted(tmp_path, monkeypatch):
    path = written(tmp_path / "x.csv", text("a,b,c", "", "") + "\n\n")
    assert as_source(path).shape == (37, 3)
    assert as_source(written(tmp_path / "x.csv.gz", text())).shape == (None, 3)
    monkeypatch.setattr(csv, "MAX_COUNTED", 10)
    assert as_source(path).shape == (None, 3)


def test_a_large_file_is_read_in_chunks(tmp_path, small_chunks):
    import pyarrow as pa

    path = written(tmp_path / "x.csv", text(x=np.tile(X, (2000, 1))))
    before, held = pa.total_allocated_bytes(), []
    rows = 0
    for block in as_source(path).blocks(0, 64):
        held.append(pa.total_allocated_bytes() - before)
        rows += len(block)
    assert rows == 74_000
    assert max(held) < path.stat().st_size / 4


# ---------------------------------------------------------------- delimiters and names


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [
        ("x.csv", ","),
        ("x.csv", ";"),
        ("x.csv", "|"),
        ("x.tsv", "\t"),
        ("x.txt", "\t"),
        ("x.txt", " "),
    ],
)
def test_the_delimiter_is_detected(tmp_path, name, delimiter):
    path = written(tmp_path / name, text(delimiter.join("abc"), delimiter=delimiter))
    source = as_source(path)
    assert_same_blocks(source, X)
    assert source.feature_names == ["a", "b", "c"]


def test_runs_of_blanks_are_one_delimiter(tmp_path, small_chunks):
    table = "".join(f"  {one:<30}\n".replace(",", "  \t ") for one in lines())
    assert_same_blocks(as_source(written(tmp_path / "x.txt", table)), X)
    assert_same_blocks(as_source(written(tmp_path / "y.txt", table.replace("\n", "\r\n"))), X)
    assert_same_blocks(as_source(written(tmp_path / "z.txt", table.rstrip("\n"))), X)


def test_files_written_by_numpy_are_read(tmp_path):
    np.savetxt(tmp_path / "x.txt", X, header="made by numpy\n1 2 3", fmt="%.18e")
    assert_same_blocks(as_source(tmp_path / "x.txt"), X)


def test_files_written_by_pandas_are_read(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X)
    frame.to_csv(tmp_path / "x.csv")
    with pytest.warns(ColumnWarning, match="column '' is an index"):
        source = as_source(tmp_path / "x.csv")
    assert source.feature_names == ["0", "1", "2"]
    assert_same_blocks(source, X)
    indexed = as_source(tmp_path / "x.csv", columns=["", "0", "1", "2"])
    np.testing.assert_array_equal(rows_read(indexed), np.column_stack([np.arange(37), X]))
    frame.to_csv(tmp_path / "y.csv", index=False)
    assert_same_blocks(as_source(tmp_path / "y.csv"), X)
    assert as_source(tmp_path / "y.csv").feature_names == ["0", "1", "2"]


def test_one_column_needs_no_delimiter(tmp_path):
    assert_same_blocks(as_source(written(tmp_path / "x.csv", text(x=X[:, :1]))), X[:, :1])
    named = as_source(written(tmp_path / "y.csv", text("height", x=X[:, :1])))
    assert named.feature_names == ["height"]
    assert_same_blocks(named, X[:, :1])


def test_columns_without_names_are_numbered(tmp_path):
    source = as_source(written(tmp_path / "x.csv", text()), columns=[2, 0])
    assert source.feature_names is None
    assert_same_blocks(source, X[:, [2, 0]])
    assert_same_blocks(as_source(tmp_path / "x.csv", columns=["2", "0"]), X[:, [2, 0]])
    assert "no column 'c'" in error_of(as_source, tmp_path / "x.csv", columns=["c"])


@pytest.mark.parametrize(
    ("first", "names"),
    [
        ("a,b,c", ["a", "b", "c"]),
        ('"a","b, too",c', ["a", "b, too", "c"]),
        (" a , b,c", ["a", "b", "c"]),
        ("a,1,2", ["a", "1", "2"]),
        ("a,a,b", ["a", "a", "b"]),
        ("a,,NA", ["a", "", "NA"]),
        ("1,2,3", ["1", "2", "3"]),
        ("1.0,2,3", None),
        ("1,1,3", None),
        ("1,,3", None),
        (",NA,", None),
        ("nan,inf,1e-3", None),
    ],
)
def test_names_are_distinguished_from_numbers(tmp_path, first, names):
    source = as_source(written(tmp_path / "x.csv", text(first)))
    assert source.feature_names == names
    assert source.shape == (37 if names else 38, 3)


def test_a_header_can_be_given(tmp_path):
    path = written(tmp_path / "x.csv", text("1,2,3"))
    assert as_source(path, header=True).feature_names == ["1", "2", "3"]
    assert as_source(path, header=True).shape == (37, 3)
    assert as_source(path, header=False).shape == (38, 3)
    named = written(tmp_path / "y.csv", text("a,b,c"))
    assert "column 0 holds text ('a' in line 1)" in error_of(as_source, named, header=False)


def test_comment_lines_before_the_table_are_skipped(tmp_path):
    assert_same_blocks(as_source(written(tmp_path / "x.csv", text("# made", "#", "", "a,b,c"))), X)


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    path = written(tmp_path / "x.csv", "\ufeff" + text("a,b,c").replace("\n", "\r\n"))
    source = as_source(path)
    assert source.feature_names == ["a", "b", "c"]
    assert_same_blocks(source, X)
    assert_same_blocks(as_source(written(tmp_path / "y.csv", "\ufeff" + text())), X)


def test_lines_longer_than_a_chunk_are_read(tmp_path, small_chunks):
    wide = np.random.default_rng(1).normal(size=(5, 400))
    assert_same_blocks(as_source(written(tmp_path / "x.csv", text(x=wide))), wide)


# ---------------------------------------------------------------- columns, weights, missing


def test_columns_and_weights_are_chosen_by_name(tmp_path):
    body = [f"x{i},{row},{WEIGHTS[i]}" for i, row in enumerate(lines())]
    path = written(tmp_path / "x.csv", "\n".join(["id,a,b,c,w", *body]))
    source = as_source(path, columns=["c", "a"], weights="w")
    assert_same_blocks(source, X[:, [2, 0]], WEIGHTS)
    assert source.feature_names == ["c", "a"]


def test_a_column_of_text_is_refused_by_name_with_the_fix(tmp_path):
    path = written(tmp_path / "x.csv", "id,a,b\nred,1,2\nblue,3,4\n")
    message = error_of(as_source, path)
    assert "column 'id' holds text ('red' in line 2)" in message
    assert "columns=['a', 'b']" in message
    assert_same_blocks(as_source(path, columns=["a", "b"]), np.array([[1.0, 2], [3, 4]]))


def test_an_unknown_column_is_reported(tmp_path):
    path = written(tmp_path / "x.csv", text("a,b,c"))
    assert "no column 'd': its columns are 'a', 'b', 'c'" in error_of(
        as_source, path, columns=["d"]
    )
    assert "no column 'w'" in error_of(as_source, path, weights="w")


@pytest.mark.parametrize("empty", ["", "NA", "nan", "NaN", "null", "#N/A", '""'])
def test_empty_fields_become_nan(tmp_path, empty):
    path = written(tmp_path / "x.csv", f"a,b\n1,2\n{empty},4\n5,{empty}\n")
    np.testing.assert_array_equal(rows_read(as_source(path)), [[1, 2], [np.nan, 4], [5, np.nan]])


# ---------------------------------------------------------------- what is refused


def test_a_missing_file_or_a_folder_is_refused(tmp_path):
    assert "does not exist" in error_of(CsvSource, tmp_path / "x.csv")
    (tmp_path / "many.csv").mkdir()
    written(tmp_path / "many.csv" / "x.csv", text())
    assert "is a folder" in error_of(CsvSource, tmp_path / "many.csv")


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n"])
def test_an_empty_file_is_refused(tmp_path, content):
    assert "is empty" in error_of(CsvSource, written(tmp_path / "x.csv", content))


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_names_without_rows_are_refused(tmp_path, name):
    assert "a header but no rows" in error_of(as_source, written(tmp_path / name, "a,b,c\n\n"))


@pytest.mark.parametrize("bad", ["1,2", "1,2,3,4"])
@pytest.mark.parametrize("before", [5, 500])
def test_a_ragged_row_is_named_by_its_line(tmp_path, small_chunks, bad, before):
    content = "a,b,c\n\n" + "1,2,3\n" * before + bad + "\n4,5,6\n"
    path = written(tmp_path / "x.csv", content)
    with pytest.raises(
        SourceError, match=rf"line {before + 3} has {bad.count(',') + 1} fields, but"
    ):
        rows_read(as_source(path))


def test_a_ragged_row_of_a_blank_delimited_table_is_reported(tmp_path, small_chunks):
    path = written(tmp_path / "x.txt", "1 2  3\n" * 300 + "1  2\n")
    with pytest.raises(
        SourceError, match=r"line 301 has 2 fields, but the first line has 3 .*blanks"
    ):
        rows_read(as_source(path))


def test_text_far_into_a_column_is_named_by_its_line(tmp_path, small_chunks):
    path = written(tmp_path / "x.csv", "a,b\n" + "1,2\n" * 300 + "3,oops\n")
    with pytest.raises(
        SourceError, match="line 302 has 'oops' in column 'b', which is not a number"
    ):
        rows_read(as_source(path))
    np.testing.assert_array_equal(rows_read(as_source(path, columns=["a"]))[-1], [3])


def test_rows_before_a_bad_line_are_read(tmp_path, small_chunks):
    path = written(tmp_path / "x.csv", "a,b\n" + "1,2\n" * 300 + "3\n")
    blocks = as_source(path).blocks(0, 8)
    np.testing.assert_array_equal(next(blocks).values, np.tile([1.0, 2], (8, 1)))


@pytest.mark.parametrize("kept", [0.2, 0.9])
def test_a_truncated_gzip_is_refused(tmp_path, small_chunks, kept):
    path = written(tmp_path / "x.csv.gz", text(x=np.tile(X, (200, 1)) + 0.0))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(SourceError, match="damaged or incomplete"):
        rows_read(as_source(path))


def test_a_file_that_is_not_gzip_is_refused(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(text().encode())
    assert "cannot be read" in error_of(as_source, path)


def test_bytes_that_are_not_text_are_refused(tmp_path):
    path = written(tmp_path / "x.csv", bytes(range(256)) * 20)
    with pytest.raises(SourceError):
        rows_read(as_source(path))


# ---------------------------------------------------------------- elsewhere, and changed


def test_addresses_are_read_by_fsspec(memory):
    memory.pipe("/far/x.csv", text("a,b,c").encode())
    memory.pipe("/far/x.csv.gz", gzip.compress(text("a,b,c").encode()))
    assert_same_blocks(as_source("memory://far/x.csv"), X)
    assert_same_blocks(as_source("memory://far/x.csv.gz"), X)


def test_a_changed_file_changes_the_fingerprint(tmp_path):
    path = written(tmp_path / "x.csv", text("a,b,c"))
    one = as_source(path)
    before = one.fingerprint()
    assert same_fingerprint(one, as_source(path))
    assert not same_fingerprint(one, as_source(path, columns=["a"]))
    assert not same_fingerprint(one, as_source(path, weights="a"))
    written(path, text("a,b,c", x=X + 1))
    assert one.fingerprint() != before
