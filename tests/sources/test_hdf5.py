"""HDF5: datasets in blocks, each chunk once; sparse counts of 10x Genomics."""

import contextlib
import itertools

import numpy as np
import pytest
from scipy import sparse

from eigengame.sources import SourceError, as_source
from eigengame.sources._chunked_array import chunk_spans
from eigengame.sources._stored_csr import ChunkReader
from eigengame.sources.hdf5 import Hdf5Source, from_dataset
from tests.sources.same_rows import assert_read_on_a_thread, assert_same_rows, real

h5py = pytest.importorskip("h5py")

N, D = 37, 5
X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
COUNTS = sparse.random_array(
    (N, D),
    density=0.4,
    random_state=np.random.default_rng(1),
    format="csr",
    dtype=np.int32,
    data_sampler=lambda size: np.arange(1, size + 1, dtype=np.int32),
)
GENES = ["A", "B", "C", "D", "E"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


def write(path, **datasets):
    with h5py.File(path, "w") as file:
        for key, data in datasets.items():
            file.create_dataset(key.replace("__", "/"), data=data)
    return path


def write_10x(path, group="matrix", names="features/name", **options):
    """Write counts in the format of Cell Ranger: genes by cells, compressed by columns."""
    with h5py.File(path, "w") as file:
        matrix = file.create_group(group)
        for part in ("data", "indices", "indptr"):
            matrix.create_dataset(part, data=getattr(COUNTS, part), **options)
        matrix["shape"] = np.array([D, N], np.int32)
        matrix["barcodes"] = np.array([f"cell{i}".encode() for i in range(N)])
        matrix[names] = np.array([gene.encode() for gene in GENES])
    return path


class Counted:
    """An array that records the requested ranges."""

    def __init__(self, array, chunks):
        self.array, self.chunks, self.asked = array, chunks, []
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, rows):
        self.asked.append((rows.start, rows.stop))
        return self.array[rows]

    def read_direct(self, place, rows):
        place[...] = self[rows]


@pytest.mark.parametrize("chunks", [None, (1, D), (8, D), (10, 2), (N, 1)])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "i2", "u1", "?"])
def test_the_only_dataset_is_read_whatever_its_chunks_and_type(path, chunks, kind):
    rows = (100 * X).astype(kind)
    with h5py.File(path, "w") as file:
        file.create_dataset("deep/X", data=rows, chunks=chunks)
        file["labels"] = np.arange(N)
    source = as_source(path)
    assert_same_rows(source, rows.astype(rows.dtype.newbyteorder("=")))
    assert source.name == f"{path}:/deep/X"


def test_a_table_beside_an_array_with_more_axes_needs_a_key(path):
    write(path, field=X.reshape(N, 5, 1), table=X[:, :2])
    message = r"2 arrays.*key='field'.*field \(37, 5, 1\).*table \(37, 2\)"
    with pytest.raises(SourceError, match=message):
        as_source(path)
    assert_same_rows(as_source(path, key="field"), X)


def test_bounds_of_a_grid_are_chosen_by_key_only(path):
    write(path, air_temperature=X.reshape(N, 5, 1), time_bnds=X[:, :2], lat_bounds=X[:5, :2])
    source = as_source(path)
    assert source.name.endswith("air_temperature")
    assert_same_rows(source, X)
    assert_same_rows(as_source(path, key="time_bnds"), X[:, :2])
    write(path, time_bnds=X[:, :2])
    with pytest.raises(SourceError, match=r"choose one.*key='time_bnds'.*time_bnds \(37, 2\)"):
        as_source(path)


def test_numbers_that_mark_missing_values_become_nan(path):
    holed = X.copy()
    holed[3, 1], holed[20, 4] = 1e20, -999
    write(path, air=holed)
    with h5py.File(path, "a") as file:
        file["air"].attrs["_FillValue"] = np.array([1e20], np.float32)
        file["air"].attrs["missing_value"] = -999.0
    expected = np.where(np.isin(holed, np.float32([1e20, -999])), np.nan, holed)
    source = as_source(path)
    assert np.isnan(expected).sum() == 2
    assert_same_rows(source, expected)
    np.testing.assert_array_equal(source.read_columns(2, 9, 1, 3), expected[2:9, 1:3])


def test_missing_or_packed_integers_are_refused(path):
    write(path, air=np.arange(N * D).reshape(N, D))
    with h5py.File(path, "a") as file:
        file["air"].attrs["_FillValue"] = 13
    with pytest.raises(
        SourceError, match=r"row 2 has the value 13, which the file marks as missing"
    ):
        as_source(path).read(0, 5)
    with h5py.File(path, "a") as file:
        file["air"].attrs["scale_factor"] = 0.01
    with pytest.raises(SourceError, match=r"is packed \(scale_factor=0\.01\)"):
        as_source(path)


def test_images_are_flattened(path):
    pictures = np.arange(N * 12, dtype=np.uint8).reshape(N, 2, 2, 3)
    source = as_source(write(path, pictures=pictures))
    assert_same_rows(source, pictures.reshape(N, 12))
    assert source.image_shape == (2, 2, 3)


def test_the_reader_thread_can_read_and_nothing_stays_open(path):
    source = as_source(write(path, X=X))
    assert_read_on_a_thread(source, X)
    begun = source.blocks(0, 8)
    next(begun)
    begun.close()
    source.read(0, 3)
    with h5py.File(path, "r+") as file:  # fails while the file is open for reading
        file["more"] = 1


@pytest.mark.parametrize("chunk", [1, 3, 8, 10, 64])
@pytest.mark.parametrize("size", [1, 4, 8, 20, 100])
@pytest.mark.parametrize("start", [0, 5, N - 1, N])
def test_each_chunk_is_read_once_and_spans_stay_small(chunk, size, start):
    array = Counted(X, (chunk, D))
    source = Hdf5Source(lambda: contextlib.nullcontext(array), "counted")
    found = [block.values for block in source.blocks(start, size)]
    np.testing.assert_array_equal(np.concatenate([X[:0], *found]), X[start:])
    assert [row for span in array.asked for row in range(*span)] == list(range(start, N))
    assert all(end % chunk == 0 or end == N for _, end in array.asked)
    assert all(end - begin <= max(size, chunk) for begin, end in array.asked)


def test_chunks_too_large_to_hold_are_read_in_parts(monkeypatch):
    monkeypatch.setattr("eigengame.sources._chunked_array.MAX_SPAN_BYTES", 10 * D * 4)
    array = Counted(X, (N, 1))
    source = Hdf5Source(lambda: contextlib.nullcontext(array), "counted")
    found = [block.values for block in source.blocks(0, 4)]
    np.testing.assert_array_equal(np.concatenate(found), X)
    assert array.asked == list(chunk_spans(0, N, 4, 10))


def test_a_key_names_a_dataset_or_a_group(path):
    write(path, a=X, deep__b=2 * X, deep__labels=np.arange(N), other__c=X, other__d=X)
    assert_same_rows(as_source(path, key="deep/b"), 2 * X)
    assert_same_rows(as_source(path, key="/deep"), 2 * X)
    with pytest.raises(SourceError, match=r"4 arrays.*key=.*a \(37, 5\).*deep/b \(37, 5\)"):
        as_source(path)
    with pytest.raises(SourceError, match=r"other has 2 arrays.*key='other/c'.*other/c \(37, 5\)"):
        as_source(path, key="other")
    with pytest.raises(SourceError, match=r"no 'e'.*deep/b \(37, 5\) float32"):
        as_source(path, key="e")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (X[:0], "no rows"),
        (X[0], "no array with rows"),
        (np.array([[b"a", b"b"]]), "no array with rows"),
        (3.0, "no array with rows"),
        (h5py.Empty("f"), "no array with rows"),
    ],
)
def test_data_that_is_not_a_table_is_refused(path, data, words):
    write(path, X=data)
    with pytest.raises(SourceError, match=words):
        as_source(path)
    with pytest.raises(SourceError, match=r"no rows|two axes|numbers"):
        as_source(path, key="X")


def test_missing_empty_truncated_and_invalid_files_are_reported(path):
    with pytest.raises(SourceError, match="does not exist"):
        as_source(path)
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="empty"):
        as_source(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match="cannot be opened as HDF5"):
        as_source(path)
    whole = write(path, X=X).read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(SourceError, match="truncated"):
        as_source(path)
    write(path)
    with pytest.raises(SourceError, match="it contains nothing"):
        as_source(path)


def test_a_corrupt_chunk_is_named_by_its_rows(path):
    with h5py.File(path, "w") as file:
        made = file.create_dataset("X", data=X, chunks=(8, D), compression="gzip")
        where = made.id.get_chunk_info(2).byte_offset
    raw = bytearray(path.read_bytes())
    raw[where : where + 20] = bytes(20)
    path.write_bytes(raw)
    blocks = as_source(path).blocks(0, 8)
    np.testing.assert_array_equal(next(blocks).values, X[:8])
    next(blocks)
    with pytest.raises(SourceError, match=r"x\.h5:/X: rows 16 to 24 cannot be read.*damaged"):
        next(blocks)


def test_a_missing_codec_is_named(path):
    with h5py.File(path, "w") as file:
        made = file.create_dataset(
            "X", X.shape, "f4", chunks=(N, D), compression=305, allow_unknown_filter=True
        )
        made.id.write_direct_chunk((0, 0), X.tobytes())
    with pytest.raises(SourceError, match=r"rows 0 to 37 cannot be read.*filter 305.*hdf5plugin"):
        list(as_source(path).blocks(0, 64))


def test_open_datasets_files_and_groups_are_read(path):
    write(path, X=X, deep__Y=X)
    with h5py.File(path) as file:
        source = as_source(file["X"])
        assert_same_rows(source, X)
        assert_read_on_a_thread(source, X)
        assert_same_rows(as_source(file["deep"]), X)
        assert_same_rows(as_source(file, key="X"), X)
        with pytest.raises(SourceError, match="2 arrays"):
            as_source(file)
        with pytest.raises(SourceError, match="without keys"):
            from_dataset(file["X"], key="X")
    with pytest.raises(SourceError, match="file was closed"):
        source.read(0, 3)


def test_the_fingerprint_notices_another_key_and_a_changed_file(path):
    write(path, a=X, b=X)
    before = as_source(path, key="a").fingerprint()
    assert as_source(path, key="a").fingerprint() == before
    assert as_source(path, key="b").fingerprint() != before
    write(path, a=X, b=np.ones((3000, 3)))
    assert as_source(path, key="a").fingerprint() != before


def test_remote_files_are_read_by_fsspec(path):
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    files.pipe("/x.h5", write(path, X=X).read_bytes())
    source = as_source("memory://x.h5")
    assert_same_rows(source, X)
    assert "version" in source.fingerprint()
    files.pipe("/x.h5", write_10x(path).read_bytes())
    assert_same_rows(as_source("memory://x.h5"), COUNTS.toarray())
    files.rm("/x.h5")
    with pytest.raises(SourceError, match="cannot be opened"):
        as_source("memory://x.h5")


# ---------------------------------------------------------------- sparse groups


@pytest.mark.parametrize("chunks", [None, (1,), (7,), (64,)])
def test_10x_counts_are_cells_by_genes_with_names(path, chunks):
    options = {} if chunks is None else {"chunks": chunks, "maxshape": (None,)}
    source = as_source(write_10x(path, **options))
    assert source.sparse
    assert source.feature_names == GENES
    assert_same_rows(source, COUNTS.toarray())
    assert_read_on_a_thread(source, COUNTS.toarray())
    fullest = max(block.values.nnz for block in source.blocks(0, 8))
    assert source.most_entries(8) == fullest
    assert source.fingerprint()["entries"] == COUNTS.nnz


def test_10x_counts_of_the_older_layout_are_found(path):
    source = as_source(write_10x(path, "GRCh38", "gene_names"))
    assert source.feature_names == GENES
    assert_same_rows(source, COUNTS.toarray())
    with h5py.File(path) as file:
        assert_same_rows(as_source(file["GRCh38"]), COUNTS.toarray())


def test_csr_groups_are_read_and_csc_groups_refused(path):
    with h5py.File(path, "w") as file:
        for key, matrix in (("rows", COUNTS), ("columns", COUNTS.tocsc())):
            for part in ("data", "indices", "indptr"):
                file[f"{key}/{part}"] = getattr(matrix, part)
            file[key].attrs["shape"] = COUNTS.shape
    assert_same_rows(as_source(path, key="rows"), COUNTS.toarray())
    with pytest.raises(SourceError, match=r"by columns \(CSC\)"):
        as_source(path, key="columns")
    with pytest.raises(SourceError, match="2 arrays with rows"):
        as_source(path)


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_each_chunk_of_entries_is_read_once(chunk):
    array = Counted(np.arange(100), (chunk,))
    entries = ChunkReader(array)
    cuts = [3, 3, 10, 12, 50, 51, 100]
    for begin, end in itertools.pairwise(cuts):
        np.testing.assert_array_equal(entries.read(begin, end), np.arange(begin, end))
    assert [one for span in array.asked for one in range(*span)] == list(range(3, 100))
    np.testing.assert_array_equal(entries.read(5, 20), np.arange(5, 20))


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("indptr", lambda old: old[:-1], "indptr"),
        ("indptr", lambda old: old[::-1], "indptr"),
        ("data", lambda old: old[:-3], "truncated"),
        ("features/name", lambda old: old[:-1], "4 feature names"),
        ("indices", lambda old: old + 3, "feature indices from"),
    ],
)
def test_damaged_counts_are_reported(path, part, change, words):
    write_10x(path)
    with h5py.File(path, "r+") as file:
        old = file["matrix"][part][:]
        del file["matrix"][part]
        file["matrix"][part] = change(old)
    with pytest.raises(SourceError, match=words):
        list(as_source(path).blocks(0, 8))


def test_a_corrupt_chunk_of_counts_is_named_by_its_rows(path):
    write_10x(path, chunks=(10,), compression="gzip", maxshape=(None,))
    with h5py.File(path) as file:
        where = file["matrix/data"].id.get_chunk_info(3).byte_offset
    raw = bytearray(path.read_bytes())
    raw[where : where + 12] = bytes(12)
    path.write_bytes(raw)
    with pytest.raises(SourceError, match=r"rows \d+ to \d+ cannot be read"):
        list(as_source(path).blocks(0, 8))


def test_real_counts_of_10x_genomics():
    path = real("singlecell_10x/GSM4339772_C144_filtered_feature_bc_matrix.h5")
    source = as_source(path)
    assert source.shape == (3716, 33_539)
    assert len(source.feature_names) == 33_539
    assert "CD3D" in source.feature_names
    entries, total, rows = 0, 0, 0
    for block in source.blocks(0, 500):
        entries, total = entries + block.values.nnz, total + int(block.values.sum())
        rows += len(block)
    assert (rows, entries, total) == (3716, 1_397_983, 13_315_819)
    later = next(source.blocks(1234, 10)).values
    assert (later != source.read(1234, 1244)).nnz == 0


# ---------------------------------------------------------------- coordinates of maps


def put_map(path, dims, values=None):
    """Write maps (5, 3, 4) whose last axes have these scales: (name, values, attributes)."""
    with h5py.File(path, "w") as file:
        file["t"] = np.zeros((5, 3, 4)) if values is None else values
        for axis, (name, degrees, attributes) in enumerate(dims, start=1):
            file[name] = degrees
            file[name].attrs.update(attributes)
            file[name].make_scale(name)
            file["t"].dims[axis].attach_scale(file[name])
    return as_source(path, key="t")


@pytest.mark.parametrize(
    ("first", "second", "axes"),
    [
        (("lat", {}), ("lon", {}), ["latitude", "longitude"]),
        (("Longitude", {}), ("Latitude", {}), ["longitude", "latitude"]),
        (("y", {"units": "degrees_north"}), ("x", {"units": b"degrees_east"}), ["latitude", "longitude"]),
        (("a", {"standard_name": "latitude"}), ("b", {"standard_name": "longitude"}), ["latitude", "longitude"]),
        (("y", {"units": "metre"}), ("x", {"units": "metre"}), None),
        (("lat", {}), ("x", {}), None),
    ],
)  # fmt: skip
def test_coordinates_of_maps_are_read_by_the_conventions_of_netcdf(tmp_path, first, second, axes):
    dims = [(first[0], [10.0, 0, -10], first[1]), (second[0], [1.0, 2, 3, 4], second[1])]
    found = put_map(tmp_path / "x.h5", dims).coordinates
    assert (found if found is None else list(found)) == axes
    if axes:
        np.testing.assert_array_equal(found[axes[0]], [10, 0, -10])
        np.testing.assert_array_equal(found[axes[1]], [1, 2, 3, 4])
