"""Columns and indexes of annotation tables of `.h5ad` files, in all encodings that anndata has used."""

import numpy as np
import pytest

from eigengame.cli.label_reader import read_labels
from eigengame.sources import SourceError, as_source
from eigengame.sources._anndata_tables import column_names, index_names, read_column
from tests.sources.cell_files import (
    barcodes,
    cell_counts,
    gene_names,
    write_10x,
    write_h5ad,
    write_old_h5ad,
)

h5py = pytest.importorskip("h5py")

TEXT = h5py.string_dtype()


def texts(*values):
    return np.array(values, dtype=TEXT)


def categories(group, name, codes, values):
    made = group.create_group(name)
    made["codes"], made["categories"] = np.array(codes, np.int8), values
    return made


@pytest.fixture
def table(tmp_path):
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        yield file.create_group("obs")


def read(table, name):
    return read_column(table.file, "obs", name)


def test_arrays_of_numbers_texts_and_booleans(table):
    table["a"], table["b"] = np.array([1.5, 2, 3]), texts("x", "", "ü")
    table["c"], table["d"] = np.array([True, False, True]), np.array([b"p", b"q", b"r"])
    assert read(table, "a") == [1.5, 2, 3]
    assert read(table, "b") == ["x", "", "ü"]
    assert read(table, "c") == [True, False, True]
    assert read(table, "d") == ["p", "q", "r"]
    assert read(table, "e") is None
    assert column_names(table) == list("abcd")


def test_categories_of_texts_numbers_and_with_missing_values(table):
    categories(table, "a", [1, -1, 0], texts("b", "t"))
    categories(table, "b", [1, 1, 0], np.array([10, 20]))
    assert read(table, "a") == ["t", None, "b"]
    assert read(table, "b") == [20, 20, 10]


def test_categories_with_a_mask_of_missing_texts(table):
    # anndata 0.12 with the texts of pandas 3.
    made = table.create_group("a")
    made["codes"] = np.array([0, 1, -1], np.int8)
    made["categories/values"], made["categories/mask"] = texts("b", "t"), np.zeros(2, bool)
    assert read(table, "a") == ["b", "t", None]


def test_categories_of_all_columns_in_one_group(table):
    # anndata 0.7.
    table["a"] = np.array([1, -1, 0], np.int8)
    table["__categories/a"] = texts("b", "t")
    assert read(table, "a") == ["t", None, "b"]
    assert column_names(table) == ["a"]


def test_numbers_booleans_and_texts_with_a_mask(table):
    for name, values in (("a", np.array([1, 2, 3])), ("b", texts("x", "y", "z"))):
        table[f"{name}/values"], table[f"{name}/mask"] = values, np.array([False, True, False])
    table["c/values"], table["c/mask"] = (
        np.array([True, False, True]),
        np.array([True, False, False]),
    )
    assert read(table, "a") == [1, None, 3]
    assert read(table, "b") == ["x", None, "z"]
    assert read(table, "c") == [None, False, True]


@pytest.mark.parametrize("kind", ["array", "categories", "mask"])
def test_an_index_has_any_encoding(table, kind):
    table.attrs["_index"] = "cells"
    if kind == "array":
        table["cells"] = texts("x", "y")
    elif kind == "categories":
        categories(table, "cells", [1, 0], texts("y", "x"))
    else:
        table["cells/values"], table["cells/mask"] = texts("x", "y"), np.zeros(2, bool)
    assert index_names(table.file, "obs") == ["x", "y"]


def test_tables_of_old_files_have_codes_with_categories_elsewhere(tmp_path):
    path = write_old_h5ad(tmp_path / "old.h5ad", cell_counts(), ("mono", "lympho"))
    labels = read_labels("type", str(path))
    assert labels[:4] == [None, "mono", "lympho", None]
    assert read_labels("depth", str(path))[:3] == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="which has index, type, depth"):
        read_labels("none", str(path))
    source = as_source(path)
    assert source.row_ids() == barcodes()
    assert source.feature_names == gene_names()


def test_x_can_be_named_as_a_layer(tmp_path):
    x = cell_counts()
    path = write_h5ad(tmp_path / "x.h5ad", x, layers={"counts": 2 * x})
    for layer, expected in (("X", x), (None, x), ("counts", 2 * x)):
        source = as_source(path, layer=layer)
        np.testing.assert_array_equal(next(source.blocks(0, 999)).values.toarray(), expected)
        assert source.layer == (layer or "X")
    with pytest.raises(SourceError, match="has no layer 'none': its layers are 'counts'"):
        as_source(path, layer="none")


def test_barcodes_of_10x_files_are_ids_of_rows(tmp_path):
    path = write_10x(tmp_path / "x.h5", cell_counts())
    assert as_source(path).row_ids() == barcodes()
    with h5py.File(path) as file:
        assert as_source(file).id_columns() == {"id": barcodes()}


def test_an_old_file_of_scanpy_is_read():
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    from pathlib import Path

    path = Path(scanpy.__file__).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
    cells = scanpy.datasets.pbmc68k_reduced()
    for name in ("bulk_labels", "louvain", "phase"):
        assert read_labels(name, str(path)) == cells.obs[name].tolist()
    raw = as_source(path, layer="raw")
    np.testing.assert_array_equal(next(raw.blocks(0, 700)).values.toarray(), cells.raw.X.toarray())
    assert raw.feature_names == list(cells.raw.var_names)
    assert raw.row_ids() == list(cells.obs_names)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_raw_of_backed_data_is_read_from_its_file(tmp_path, mode):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    pandas = pytest.importorskip("pandas")
    from scipy import sparse

    x = cell_counts()
    cells = anndata.AnnData(sparse.csr_matrix(x), var=pandas.DataFrame(index=gene_names()))
    cells.raw = cells
    cells = cells[:, :7].copy()
    cells.write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed=mode)
    source = as_source(backed, layer="raw")
    np.testing.assert_array_equal(next(source.blocks(0, 999)).values.toarray(), x)
    assert source.feature_names == gene_names()
    backed.file.close()
