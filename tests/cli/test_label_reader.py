"""Labels are read from files and from columns of the data."""

import gzip

import numpy as np
import pytest

from eigengame.cli.label_reader import read_labels


def test_a_text_file_has_one_label_per_line(tmp_path):
    (tmp_path / "kinds.txt").write_text("3\n1\n2\n")
    labels = read_labels(str(tmp_path / "kinds.txt"), "data.npy")
    assert labels == [3, 1, 2]
    assert labels.name == "kinds"


def test_an_array_is_read(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["a", "b"]))
    assert read_labels(str(tmp_path / "y.npy"), "data.npy") == ["a", "b"]
    np.save(tmp_path / "y.npy", np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        read_labels(str(tmp_path / "y.npy"), "data.npy")


def test_idx_files_are_read(tmp_path):
    (tmp_path / "y-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    assert read_labels(str(tmp_path / "y-idx1-ubyte"), "data.npy") == [7, 8, 9]


def test_files_without_labels_are_rejected(tmp_path):
    (tmp_path / "y.idx").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 3, 7, 8, 9]))
    with pytest.raises(ValueError, match="not an idx file of labels"):
        read_labels(str(tmp_path / "y.idx"), "data.npy")
    (tmp_path / "y.gz").write_bytes(b"\x1f\x8b\xff\xff")
    with pytest.raises(ValueError, match="is not text"):
        read_labels(str(tmp_path / "y.gz"), "data.npy")


def test_a_column_of_a_text_table_is_read_by_name(tmp_path):
    text = 'a;"b c";d\n1;x;0.5\n2;y;1\n'
    (tmp_path / "t.csv").write_text(text)
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(text)
    for name in ("t.csv", "t.csv.gz"):
        assert read_labels("b c", str(tmp_path / name)) == ["x", "y"]
        assert read_labels("d", str(tmp_path / name)) == [0.5, 1.0]
    with pytest.raises(ValueError, match="which has a, b c, d"):
        read_labels("z", str(tmp_path / "t.csv"))


def test_a_column_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": ["x", None]}), tmp_path / "t.parquet")
    assert read_labels("b", str(tmp_path / "t.parquet")) == ["x", None]


def test_a_column_of_anndata_obs(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        obs = file.create_group("obs")
        obs["depth"] = np.array([1, 2, 3])
        kind = obs.create_group("kind")
        kind["categories"] = np.array(["b", "t"], dtype=h5py.string_dtype())
        kind["codes"] = np.array([1, -1, 0], np.int8)
    assert read_labels("kind", str(tmp_path / "t.h5ad")) == ["t", None, "b"]
    assert read_labels("depth", str(tmp_path / "t.h5ad")) == [1, 2, 3]


def test_data_without_columns_is_rejected():
    with pytest.raises(ValueError, match="has no columns with names"):
        read_labels("kind", "data.npy")


def test_labels_of_old_anndata_files_are_read_from_a_compound_table(tmp_path):
    import h5py

    kind = np.dtype([("index", "S4"), ("group", "S8")])
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["obs"] = np.array([(b"c0", b"left"), (b"c1", b"right")], kind)
    assert list(read_labels("group", str(tmp_path / "x.h5ad"))) == ["left", "right"]
