"""Labels come from files, and from columns of what has columns."""

import gzip

import numpy as np
import pytest

from eigengame.cli.labels import labels_of


def test_a_file_has_a_label_on_each_line(tmp_path):
    (tmp_path / "kinds.txt").write_text("3\n1\n2\n")
    labels = labels_of(str(tmp_path / "kinds.txt"), "data.npy")
    assert labels == [3, 1, 2]
    assert labels.name == "kinds"


def test_an_array_is_taken_as_it_is(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["a", "b"]))
    assert labels_of(str(tmp_path / "y.npy"), "data.npy") == ["a", "b"]
    np.save(tmp_path / "y.npy", np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        labels_of(str(tmp_path / "y.npy"), "data.npy")


def test_idx_files_are_read_as_they_come(tmp_path):
    (tmp_path / "y-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    assert labels_of(str(tmp_path / "y-idx1-ubyte"), "data.npy") == [7, 8, 9]


def test_bytes_that_are_no_labels_are_refused(tmp_path):
    (tmp_path / "y.idx").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 3, 7, 8, 9]))
    with pytest.raises(ValueError, match="no idx file of labels"):
        labels_of(str(tmp_path / "y.idx"), "data.npy")
    (tmp_path / "y.gz").write_bytes(b"\x1f\x8b\xff\xff")
    with pytest.raises(ValueError, match="is no text"):
        labels_of(str(tmp_path / "y.gz"), "data.npy")


def test_a_column_of_text_is_found_by_its_name(tmp_path):
    text = 'a;"b c";d\n1;x;0.5\n2;y;1\n'
    (tmp_path / "t.csv").write_text(text)
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(text)
    for name in ("t.csv", "t.csv.gz"):
        assert labels_of("b c", str(tmp_path / name)) == ["x", "y"]
        assert labels_of("d", str(tmp_path / name)) == [0.5, 1.0]
    with pytest.raises(ValueError, match="which has a, b c, d"):
        labels_of("z", str(tmp_path / "t.csv"))


def test_a_column_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": ["x", None]}), tmp_path / "t.parquet")
    assert labels_of("b", str(tmp_path / "t.parquet")) == ["x", None]


def test_a_column_of_what_anndata_says_of_its_rows(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        obs = file.create_group("obs")
        obs["depth"] = np.array([1, 2, 3])
        kind = obs.create_group("kind")
        kind["categories"] = np.array(["b", "t"], dtype=h5py.string_dtype())
        kind["codes"] = np.array([1, -1, 0], np.int8)
    assert labels_of("kind", str(tmp_path / "t.h5ad")) == ["t", None, "b"]
    assert labels_of("depth", str(tmp_path / "t.h5ad")) == [1, 2, 3]


def test_data_without_columns_is_refused():
    with pytest.raises(ValueError, match="has no columns of labels"):
        labels_of("kind", "data.npy")
