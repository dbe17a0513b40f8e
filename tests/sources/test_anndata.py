"""AnnData: .h5ad files of every version, read in blocks by h5py, and objects in memory and backed."""

import numpy as np
import pytest
from scipy import sparse

from eigengame._system import memory
from eigengame.sources import SourceError, as_source
from eigengame.sources.anndata import from_anndata, open_h5ad
from tests.sources.same_rows import assert_read_on_a_thread
from tests.sources.tables import assert_same_blocks, error_of, rows_read, same_fingerprint

h5py = pytest.importorskip("h5py")

COUNTS = sparse.random(37, 6, density=0.4, format="csr", random_state=0, dtype=np.float32)
X = COUNTS.toarray()
NAMES = [f"gene {i}" for i in range(6)]
CELLS = [f"cell {i}" for i in range(37)]


def put_sparse(parent, key, matrix, **attributes):
    group = parent.create_group(key)
    kind = f"{matrix.format}_matrix"
    group.attrs.update(attributes or {"encoding-type": kind, "shape": matrix.shape})
    for part in ("data", "indices", "indptr"):
        group[part] = getattr(matrix, part)


def put_names(parent, names=NAMES):
    var = parent.create_group("var")
    var.attrs["_index"] = "gene_ids"
    var["gene_ids"] = [name.encode() for name in names]


def h5ad(path, matrix=COUNTS, **layers):
    """Write a file in the layout of anndata."""
    with h5py.File(path, "w") as file:
        put_names(file)
        file.create_group("layers")
        for key, one in {"X": matrix, **{f"layers/{k}": v for k, v in layers.items()}}.items():
            if sparse.issparse(one):
                put_sparse(file, key, one)
            elif one is not None:
                file.create_dataset(key, data=one, chunks=(5, one.shape[1]))
                file[key].attrs["encoding-type"] = "array"
    return path


@pytest.mark.parametrize("matrix", [X, COUNTS, COUNTS.tocsc()], ids=["dense", "csr", "csc"])
def test_rows_are_those_of_the_array_from_any_row(tmp_path, matrix):
    source = as_source(h5ad(tmp_path / "x.h5ad", matrix))
    assert_same_blocks(source, X)
    assert source.feature_names == NAMES
    assert source.sparse == sparse.issparse(matrix)
    if source.sparse:
        assert source.most_entries(8) == max(COUNTS[i : i + 8].nnz for i in range(0, 37, 8))
    else:
        assert_read_on_a_thread(source, X)


@pytest.mark.parametrize("matrix", [X, COUNTS, COUNTS.tocsc()], ids=["dense", "csr", "csc"])
def test_ids_of_rows_are_the_names_of_cells(tmp_path, matrix):
    source = as_source(h5ad(tmp_path / "x.h5ad", matrix))
    assert source.row_ids() is None
    with h5py.File(tmp_path / "x.h5ad", "a") as file:
        file.create_group("obs")
    assert as_source(tmp_path / "x.h5ad").row_ids() is None  # a table without an index
    with h5py.File(tmp_path / "x.h5ad", "a") as file:
        file["obs"].attrs["_index"] = "barcodes"
        file["obs/barcodes"] = [f"cell {i}".encode() for i in range(37)]
    assert as_source(tmp_path / "x.h5ad").row_ids() == [f"cell {i}" for i in range(37)]


@pytest.mark.parametrize("layer", [2 * X, 2 * COUNTS], ids=["dense", "csr"])
def test_a_layer_is_read_by_name(tmp_path, layer):
    path = h5ad(tmp_path / "x.h5ad", counts=layer)
    assert_same_blocks(as_source(path, layer="counts"), 2 * X)
    assert_same_blocks(as_source(path), X)
    assert as_source(path, layer="counts").feature_names == NAMES


def test_raw_is_a_layer_with_its_own_names(tmp_path):
    path = h5ad(tmp_path / "x.h5ad")
    with h5py.File(path, "a") as file:
        put_sparse(file.create_group("raw"), "X", sparse.csr_array(np.hstack([X, X])))
        put_names(file["raw"], [f"raw {i}" for i in range(12)])
    source = as_source(path, layer="raw")
    assert_same_blocks(source, np.hstack([X, X]))
    assert source.feature_names[11] == "raw 11"


def test_only_the_entries_of_a_block_are_read(tmp_path, monkeypatch):
    source = as_source(h5ad(tmp_path / "x.h5ad"))
    read = []
    real = h5py.Dataset.__getitem__

    def watched(self, key, *more):
        found = real(self, key, *more)
        if self.name.endswith("/data"):
            read.append(np.size(found))
        return found

    monkeypatch.setattr(h5py.Dataset, "__getitem__", watched)
    next(source.blocks(8, 8))
    assert read == [COUNTS[8:16].nnz]


def test_a_csc_matrix_that_does_not_fit_in_memory_is_refused(tmp_path, monkeypatch):
    path = h5ad(tmp_path / "x.h5ad", COUNTS.tocsc())
    monkeypatch.setattr(memory, "free_memory", lambda: 100)
    message = error_of(as_source, path)
    assert "is stored by columns (CSC)" in message
    assert "tocsr()" in message
    assert_same_blocks(as_source(h5ad(tmp_path / "y.h5ad", COUNTS)), X)


# ---------------------------------------------------------------- layouts of names, and of old


def names_after(path, put):
    h5ad(path)
    with h5py.File(path, "a") as file:
        del file["var"]
        put(file)
    return as_source(path).feature_names


def test_names_are_read_from_every_layout(tmp_path):
    def compound(file):
        kind = np.dtype([("index", "S10"), ("n", int)])
        file["var"] = np.array([(name.encode(), 1) for name in NAMES], kind)

    def categories(file):
        index = file.create_group("var/_index")
        index["categories"] = [name.encode() for name in reversed(NAMES)]
        index["codes"] = np.arange(6)[::-1].astype(np.int8)

    def nullable(file):
        index = file.create_group("var/_index")
        index["values"] = [name.encode() for name in NAMES]
        index["mask"] = np.zeros(6, bool)

    assert names_after(tmp_path / "a.h5ad", compound) == NAMES
    assert names_after(tmp_path / "b.h5ad", categories) == NAMES
    assert names_after(tmp_path / "c.h5ad", nullable) == NAMES
    assert names_after(tmp_path / "d.h5ad", lambda file: None) is None


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sparse_files_of_old_versions_are_read(tmp_path, kind):
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        old = {"h5sparse_format": kind.encode(), "h5sparse_shape": (37, 6)}
        put_sparse(file, "X", COUNTS.asformat(kind), **old)
        put_names(file)
    assert_same_blocks(as_source(path), X)


# ---------------------------------------------------------------- what is refused


def test_a_missing_or_empty_file_is_refused(tmp_path):
    assert "does not exist" in error_of(as_source, tmp_path / "x.h5ad")
    assert "cannot be opened as HDF5" in error_of(open_h5ad, tmp_path / "x.h5ad")
    (tmp_path / "y.h5ad").touch()
    assert "is empty" in error_of(as_source, tmp_path / "y.h5ad")
    (tmp_path / "z.h5ad").write_bytes(b"no HDF5 at all")
    assert "cannot be opened as HDF5" in error_of(as_source, tmp_path / "z.h5ad")


def test_a_truncated_file_is_refused(tmp_path):
    path = h5ad(tmp_path / "x.h5ad")
    path.write_bytes(path.read_bytes()[:-1000])
    assert "cannot be opened as HDF5" in error_of(as_source, path)


def test_an_unknown_layer_is_reported_with_the_existing_ones(tmp_path):
    path = h5ad(tmp_path / "x.h5ad", counts=X, logs=X)
    message = error_of(as_source, path, layer="cuonts")
    assert "no layer 'cuonts': its layers are 'counts', 'logs'" in message
    assert "no layer 'raw'" in error_of(as_source, path, layer="raw")


def test_a_file_without_x_is_refused(tmp_path):
    assert "has no X" in error_of(as_source, h5ad(tmp_path / "x.h5ad", None, counts=X))


def test_an_unknown_encoding_is_reported(tmp_path):
    path = h5ad(tmp_path / "x.h5ad")
    with h5py.File(path, "a") as file:
        file["X"].attrs["encoding-type"] = "dataframe"
    assert "has the encoding 'dataframe'" in error_of(as_source, path)


@pytest.mark.parametrize("matrix", [X[:0], COUNTS[:0], COUNTS.tocsc()[:0]])
def test_zero_rows_are_refused(tmp_path, matrix):
    assert "has no rows" in error_of(as_source, h5ad_without_chunks(tmp_path / "x.h5ad", matrix))


def h5ad_without_chunks(path, matrix):
    with h5py.File(path, "w") as file:
        if sparse.issparse(matrix):
            put_sparse(file, "X", matrix)
        else:
            file["X"] = matrix
    return path


def test_text_is_refused(tmp_path):
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.array([[b"a", b"b"]])
    assert "numbers are needed" in error_of(as_source, path)


def test_truncated_entries_are_detected(tmp_path):
    path = h5ad(tmp_path / "x.h5ad")
    with h5py.File(path, "a") as file:
        kept = file["X/data"][:-3]
        del file["X/data"]
        file["X/data"] = kept
    assert "truncated" in error_of(as_source, path)


def test_a_wrong_number_of_names_is_refused(tmp_path):
    path = h5ad(tmp_path / "x.h5ad")
    with h5py.File(path, "a") as file:
        del file["var"]
        put_names(file, NAMES[:4])
    assert "6 features, but 4 feature names" in error_of(as_source, path)


@pytest.mark.parametrize("matrix", [X, COUNTS, COUNTS.tocsc()], ids=["dense", "csr", "csc"])
def test_a_changed_file_changes_the_fingerprint(tmp_path, matrix):
    path = h5ad(tmp_path / "x.h5ad", matrix, counts=matrix)
    one = as_source(path)
    before = one.fingerprint()
    assert same_fingerprint(one, as_source(path))
    assert not same_fingerprint(one, as_source(path, layer="counts"))
    h5ad(path, matrix)
    assert one.fingerprint() != before


def test_addresses_are_read_by_fsspec(tmp_path, memory):
    memory.pipe("/far/x.h5ad", h5ad(tmp_path / "x.h5ad").read_bytes())
    assert_same_blocks(as_source("memory://far/x.h5ad"), X)


# ---------------------------------------------------------------- objects


@pytest.fixture
def anndata():
    return pytest.importorskip("anndata")


def cells(anndata, matrix=COUNTS, **layers):
    pd = pytest.importorskip("pandas")
    return anndata.AnnData(
        matrix, obs=pd.DataFrame(index=CELLS), var=pd.DataFrame(index=NAMES), layers=layers
    )


@pytest.mark.parametrize("matrix", [X, COUNTS, COUNTS.tocsc()], ids=["dense", "csr", "csc"])
def test_an_object_in_memory_and_the_file_it_writes_are_read(tmp_path, anndata, matrix):
    one = cells(anndata, matrix, counts=3 * matrix)
    one.raw = one
    one.write_h5ad(tmp_path / "x.h5ad", compression="gzip")
    for source in (as_source(one), as_source(tmp_path / "x.h5ad")):
        assert_same_blocks(source, X)
        assert source.feature_names == NAMES
    for layer, times in (("counts", 3), ("raw", 1)):
        assert_same_blocks(as_source(one, layer=layer), times * X)
        assert_same_blocks(as_source(tmp_path / "x.h5ad", layer=layer), times * X)


@pytest.mark.parametrize("matrix", [X, COUNTS], ids=["dense", "csr"])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_backed_object_is_read_from_its_file(tmp_path, anndata, matrix, mode):
    cells(anndata, matrix, counts=matrix).write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed=mode)
    source = as_source(backed)
    assert_same_blocks(source, X)
    assert source.feature_names == NAMES
    assert_same_blocks(as_source(backed, layer="counts"), X)
    with pytest.raises(SourceError, match=r"is a view of a file.*to_memory"):
        as_source(backed[:9])
    backed.file.close()


def test_a_view_in_memory_is_its_rows(anndata):
    assert_same_blocks(from_anndata(cells(anndata)[5:30]), X[5:30])


def test_objects_without_the_requested_matrix_are_refused(anndata):
    message = error_of(as_source, cells(anndata, counts=COUNTS), layer="cuonts")
    assert "no layer 'cuonts'" in message
    assert "'counts'" in message
    assert "no X" in error_of(as_source, cells(anndata, None, counts=COUNTS))
    assert "no rows" in error_of(as_source, cells(anndata)[:0])


def test_rows_read_from_an_object_are_those_of_its_sparse_matrix(anndata):
    np.testing.assert_array_equal(rows_read(as_source(cells(anndata, COUNTS))), X)
