"""Parquet and Arrow: files and folders by row groups and batches, from any row, and errors."""

import numpy as np
import pytest

from eigengame._system import memory as system_memory
from eigengame.sources import SourceError, as_source
from eigengame.sources.columnar import open_arrow, open_parquet
from tests.sources.same_rows import assert_read_on_a_thread
from tests.sources.tables import assert_same_blocks, error_of, rows_read, same_fingerprint

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feathers = pytest.importorskip("pyarrow.feather")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(37, 3))
WEIGHTS = RNG.integers(0, 4, size=37).astype(float)
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
WITH_TEXT = TABLE.append_column("text", pa.array(["x"] * 37)).append_column("w", pa.array(WEIGHTS))
GROUP = 8


def parquet(path, table=TABLE, **options):
    pq.write_table(table, path, row_group_size=GROUP, **options)
    return path


def arrow(path, table=TABLE, **options):
    with pa.ipc.new_file(path, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=GROUP)
    return path


def stream(path, table=TABLE):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=GROUP)
    return path


def feather(path, table=TABLE):
    feathers.write_feather(table, path, chunksize=GROUP)
    return path


KINDS = {"x.parquet": parquet, "x.arrow": arrow, "y.arrow": stream, "x.feather": feather}
each_kind = pytest.mark.parametrize("name", KINDS)
random_kind = pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.feather"])


@each_kind
def test_rows_are_those_of_the_array_from_any_row(tmp_path, name):
    source = as_source(KINDS[name](tmp_path / name))
    assert_same_blocks(source, X)
    assert_read_on_a_thread(source, X)
    assert source.feature_names == ["a", "b", "c"]
    assert source.shape[0] == (None if name == "y.arrow" else 37)
    assert as_source(tmp_path / name, name="mine").name == "mine"


@each_kind
def test_columns_and_weights_are_chosen_by_name(tmp_path, name):
    path = KINDS[name](tmp_path / name, WITH_TEXT)
    source = as_source(path, columns=["c", "a"], weights="w")
    assert_same_blocks(source, X[:, [2, 0]], WEIGHTS)
    assert source.feature_names == ["c", "a"]


@each_kind
def test_a_column_of_text_is_refused_by_name_with_the_fix(tmp_path, name):
    message = error_of(as_source, KINDS[name](tmp_path / name, WITH_TEXT), weights="w")
    assert "column 'text' holds string" in message
    assert "columns=['a', 'b', 'c'" in message


@each_kind
def test_an_unknown_column_is_reported(tmp_path, name):
    message = error_of(as_source, KINDS[name](tmp_path / name), columns=["d"])
    assert "no column 'd': its columns are 'a', 'b', 'c'" in message


@random_kind
def test_the_files_of_a_folder_are_read_in_sorted_order(tmp_path, name):
    folder = tmp_path / "many"
    folder.mkdir()
    ending = name.partition(".")[2]
    for i, begin in enumerate(range(0, 37, 10)):
        KINDS[name](folder / f"part-{i}.{ending}", TABLE.slice(begin, 10))
    (folder / "_SUCCESS").touch()
    (folder / f".hidden.{ending}").touch()
    opened = (open_parquet if ending == "parquet" else open_arrow)(folder)
    assert_same_blocks(opened, X)
    assert opened.shape == (37, 3)
    assert_same_blocks(as_source(folder), X)


def test_a_folder_of_streams_has_an_unknown_number_of_rows(tmp_path):
    stream(tmp_path / "a.arrow", TABLE.slice(0, 20))
    arrow(tmp_path / "b.arrow", TABLE.slice(20))
    source = open_arrow(tmp_path)
    assert source.shape == (None, 3)
    assert_same_blocks(source, X)


def test_files_with_empty_row_groups_between_are_read(tmp_path):
    for i, part in enumerate([TABLE.slice(0, 8), TABLE.slice(0, 0), TABLE.slice(8)]):
        parquet(tmp_path / f"{i}.parquet", part)
    assert_same_blocks(open_parquet(tmp_path), X)


def test_the_columns_of_a_second_file_may_be_in_another_order(tmp_path):
    parquet(tmp_path / "0.parquet", TABLE.slice(0, 20))
    parquet(tmp_path / "1.parquet", TABLE.slice(20).select(["c", "a", "b"]))
    assert_same_blocks(open_parquet(tmp_path), X)


def test_files_with_other_columns_are_refused(tmp_path):
    parquet(tmp_path / "0.parquet")
    parquet(tmp_path / "1.parquet", TABLE.select(["a", "b"]))
    message = error_of(open_parquet, tmp_path)
    assert "1.parquet has other columns" in message
    assert "'c'" in message
    assert_same_blocks(open_parquet(tmp_path, columns=["b", "a"]), np.vstack([X, X])[:, [1, 0]])


def test_files_of_different_types_get_a_common_dtype(tmp_path):
    parquet(tmp_path / "0.parquet", pa.table({"a": pa.array([1, 2], pa.uint8())}))
    parquet(tmp_path / "1.parquet", pa.table({"a": pa.array([0.5], pa.float32())}))
    source = open_parquet(tmp_path)
    assert source.dtype == np.float32
    np.testing.assert_array_equal(rows_read(source), [[1], [2], [0.5]])


def spoil(path, group, column):
    """Overwrite the beginning of one column of a row group, so that reading it fails."""
    about = pq.ParquetFile(path).metadata.row_group(group).column(column)
    first = about.dictionary_page_offset or about.data_page_offset
    whole = bytearray(path.read_bytes())
    whole[first : first + 16] = b"\xff" * 16
    path.write_bytes(whole)


def test_parquet_from_a_row_on_leaves_out_the_row_groups_before(tmp_path):
    path = parquet(tmp_path / "x.parquet")
    spoil(path, 0, 1)
    np.testing.assert_array_equal(rows_read(as_source(path), start=GROUP), X[GROUP:])
    with pytest.raises(SourceError, match="cannot be read beyond row 0"):
        rows_read(as_source(path))


def test_arrow_from_a_row_on_leaves_out_the_batches_before(tmp_path, monkeypatch):
    asked = []
    real = pa.ipc.RecordBatchFileReader.get_batch

    class Watched(pa.ipc.RecordBatchFileReader):
        def get_batch(self, number):
            asked.append(number)
            return real(self, number)

    source = as_source(arrow(tmp_path / "x.arrow"))
    monkeypatch.setattr(pa.ipc, "RecordBatchFileReader", Watched)
    np.testing.assert_array_equal(rows_read(source, start=2 * GROUP + 1), X[2 * GROUP + 1 :])
    assert asked == [2, 3, 4]


def test_one_row_group_is_read_at_a_time(tmp_path, monkeypatch):
    asked = []
    real = pq.ParquetFile.iter_batches

    def watched(self, *arguments, row_groups, **options):
        asked.append(row_groups)
        return real(self, *arguments, row_groups=row_groups, **options)

    path = parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    blocks = open_parquet(path).blocks(2 * GROUP, GROUP)
    next(blocks)
    assert asked == [[2]]
    next(blocks)
    assert asked == [[2], [3]]


def test_only_the_needed_columns_are_read(tmp_path):
    path = parquet(tmp_path / "x.parquet", WITH_TEXT)
    for group in range(5):
        spoil(path, group, 1)
    assert_same_blocks(open_parquet(path, columns=["a", "c"]), X[:, [0, 2]])
    with pytest.raises(SourceError):
        rows_read(open_parquet(path, columns=["b"]))


@pytest.mark.parametrize("maker", [parquet, feather])
def test_memory_does_not_grow_with_the_rows(tmp_path, maker):
    def peak(rows):
        ending = "parquet" if maker is parquet else "feather"
        path = tmp_path / f"{rows}.{ending}"
        with_groups = pa.table({f"c{i}": np.arange(rows) * 1.5 for i in range(8)})
        if maker is parquet:
            pq.write_table(with_groups, path, row_group_size=4096)
        else:
            feathers.write_feather(with_groups, path, chunksize=4096)
        del with_groups
        before = pa.total_allocated_bytes()
        held = [pa.total_allocated_bytes() - before for _ in as_source(path).blocks(0, 1024)]
        return max(held)

    few, many = peak(2**14), peak(2**17)
    assert many < few + 2**20


def test_a_row_group_that_does_not_fit_is_refused_with_the_fix(tmp_path, monkeypatch):
    path = parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(system_memory, "free_memory", lambda: 100)
    message = error_of(open_parquet, path)
    assert "a row group of 8 rows needs" in message
    assert "row_group_size" in message


# ---------------------------------------------------------------- dtypes and nulls


def test_small_integers_without_nulls_keep_their_dtype(tmp_path):
    x = RNG.integers(0, 256, size=(37, 2)).astype(np.uint8)
    path = parquet(tmp_path / "x.parquet", pa.table({"a": x[:, 0], "b": x[:, 1]}))
    assert_same_blocks(as_source(path), x)


def test_integers_with_a_null_become_floats(tmp_path):
    values = pa.array([None if i == 30 else i for i in range(37)], pa.uint8())
    truth = np.arange(37, dtype=np.float32)[:, None]
    truth[30] = np.nan
    assert_same_blocks(as_source(parquet(tmp_path / "x.parquet", pa.table({"a": values}))), truth)


def test_integers_without_statistics_become_floats(tmp_path):
    table = pa.table({"a": pa.array(range(37), pa.uint8())})
    path = parquet(tmp_path / "x.parquet", table, write_statistics=False)
    assert_same_blocks(as_source(path), np.arange(37, dtype=np.float32)[:, None])


@each_kind
def test_nulls_become_nan(tmp_path, name):
    values = [None if i % 7 == 0 else float(i) for i in range(37)]
    truth = np.array([[np.nan if one is None else one] for one in values])
    assert_same_blocks(as_source(KINDS[name](tmp_path / name, pa.table({"a": values}))), truth)


def test_a_name_that_is_a_prefix_of_another_is_distinguished(tmp_path):
    table = pa.table({"a.b": X[:, 0], "a": X[:, 1], "w.x": X[:, 2]})
    path = parquet(tmp_path / "x.parquet", table)
    assert_same_blocks(as_source(path, columns=["a"]), X[:, [1]])
    assert_same_blocks(as_source(path), X)


# ---------------------------------------------------------------- lists as rows


@each_kind
@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 3)])
def test_the_lists_of_a_column_are_rows(tmp_path, name, kind):
    embeddings = pa.array(list(X.astype(np.float32)), kind)
    table = pa.table({"id": ["x"] * 37, "row": embeddings, "w": WEIGHTS})
    path = KINDS[name](tmp_path / name, table)
    source = as_source(path, columns="row", weights="w")
    assert_same_blocks(source, X.astype(np.float32), WEIGHTS)
    assert source.feature_names is None
    assert "columns='row'" in error_of(as_source, path)


@each_kind
def test_ragged_lists_are_reported_with_the_row(tmp_path, name):
    rows = [[1.0, 2.0]] * 20 + [[1.0]] + [[1.0, 2.0]] * 16
    source = as_source(KINDS[name](tmp_path / name, pa.table({"row": rows})))
    with pytest.raises(SourceError, match="the list in row 20 of column 'row' has 1"):
        rows_read(source, start=GROUP, size=GROUP)


def test_lists_of_another_length_in_a_second_file_are_refused(tmp_path):
    for width in (2, 3):
        rows = pa.array([[1.0] * width] * 4, pa.list_(pa.float64(), width))
        parquet(tmp_path / f"{width}.parquet", pa.table({"row": rows}))
    assert "3 features instead of 2" in error_of(open_parquet, tmp_path)


def test_lists_of_small_integers_keep_their_dtype(tmp_path):
    x = RNG.integers(0, 256, size=(37, 4)).astype(np.uint8)
    table = pa.table({"row": pa.array(x.tolist(), pa.list_(pa.uint8()))})
    assert_same_blocks(as_source(parquet(tmp_path / "x.parquet", table)), x)


# ---------------------------------------------------------------- elsewhere


@each_kind
def test_addresses_are_read_by_fsspec(tmp_path, memory, name):
    local = KINDS[name](tmp_path / name)
    memory.pipe(f"/far/{name}", local.read_bytes())
    assert_same_blocks(as_source(f"memory://far/{name}"), X)
    assert_same_blocks(as_source(f"file://{local}"), X)


def test_a_remote_folder_is_read_in_order(tmp_path, memory):
    for i, begin in enumerate(range(0, 37, 10)):
        part = parquet(tmp_path / "part.parquet", TABLE.slice(begin, 10))
        memory.pipe(f"/far/many.parquet/{i}.parquet", part.read_bytes())
    source = as_source("memory://far/many.parquet")
    assert_same_blocks(source, X)
    before = source.fingerprint()
    memory.pipe("/far/many.parquet/0.parquet", part.read_bytes())
    assert source.fingerprint() != before


def test_unreachable_addresses_are_refused(memory):
    assert "does not exist" in error_of(open_parquet, "memory://nowhere/x.parquet")
    assert "cannot be reached" in error_of(open_parquet, "nosuch://x/y.parquet")


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("call", [open_parquet, open_arrow, as_source])
def test_a_missing_file_is_named(tmp_path, call):
    assert "does not exist" in error_of(call, tmp_path / "none.parquet")


@pytest.mark.parametrize("call", [open_parquet, open_arrow])
def test_a_folder_without_matching_files_is_refused(tmp_path, call):
    assert "contains no file that ends in" in error_of(call, tmp_path)


@pytest.mark.parametrize("call", [open_parquet, open_arrow])
@pytest.mark.parametrize("content", [b"", b"ARROW1", b"not a table at all, only text"])
def test_a_file_of_another_format_is_refused(tmp_path, call, content):
    path = tmp_path / "x.data"
    path.write_bytes(content)
    assert "cannot be opened as" in error_of(call, path)


@each_kind
def test_zero_rows_are_refused(tmp_path, name):
    path = KINDS[name](tmp_path / name, TABLE.slice(0, 0))
    if name == "y.arrow":  # the rows of a stream are counted by reading
        assert list(as_source(path).blocks(0, 8)) == []
    else:
        assert "no rows" in error_of(as_source, path)


@each_kind
def test_a_truncated_file_is_refused(tmp_path, name):
    path = KINDS[name](tmp_path / name)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(SourceError, match=r"damaged|incomplete"):
        rows_read(as_source(path))


def test_feather_version_1_is_refused(tmp_path):
    (tmp_path / "x.feather").write_bytes(b"FEA1" + b"\0" * 100)
    assert "Feather version 1" in error_of(as_source, tmp_path / "x.feather")


@each_kind
def test_a_changed_file_changes_the_fingerprint(tmp_path, name):
    path = KINDS[name](tmp_path / name)
    one = as_source(path)
    before = one.fingerprint()
    assert same_fingerprint(one, as_source(path))
    assert not same_fingerprint(one, as_source(path, columns=["a"]))
    assert not same_fingerprint(one, as_source(path, weights="a"))
    KINDS[name](path, TABLE.slice(1))
    assert one.fingerprint() != before
