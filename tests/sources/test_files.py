"""Plain arrays in files: .npy, .npz, raw binary, idx."""

import gzip
import io
import os
import struct
import zipfile

import numpy as np
import pytest
from scipy import sparse

from eigengame.sources import SourceError, as_source
from eigengame.sources._array_file import ArrayFileSource, PositionedFile
from eigengame.sources.npy import open_npy
from tests.sources.same_rows import assert_read_on_a_thread, assert_same_rows, real

X = np.random.default_rng(0).normal(size=(37, 5)).astype(np.float32)
PICTURES = np.arange(37 * 4 * 3, dtype=np.uint8).reshape(37, 4, 3)


def saved(path, array):
    np.save(path, array)
    return path


def idx(array, code=0x08):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


# ---------------------------------------------------------------- .npy


def largest_read(source, monkeypatch):
    """Return the largest number of bytes that one block of 4 rows reads at a time."""
    seen = []
    read_into = PositionedFile.read_into

    def counted(self, buffer, position):
        seen.append(len(buffer))
        return read_into(self, buffer, position)

    monkeypatch.setattr(PositionedFile, "read_into", counted)
    for _ in source.blocks(0, 4):
        pass
    return max(seen)


def test_npy_rows_are_read_block_by_block(tmp_path, monkeypatch):
    source = as_source(saved(tmp_path / "x.npy", X))
    assert_same_rows(source, X)
    assert_read_on_a_thread(source, X)
    assert isinstance(source, ArrayFileSource)
    assert next(source.blocks(8, 16)).values.ctypes.data % 64 == 0  # JAX uses it without a copy
    assert largest_read(source, monkeypatch) == 4 * X[0].nbytes


@pytest.mark.parametrize("kind", ["f2", ">f2", "f8", ">f8", "?", "i1", ">i8", "u8", "longdouble"])
def test_npy_and_npz_of_every_kind_of_number_are_read(tmp_path, kind):
    rows = (4 * np.abs(X)).astype(kind)
    np.savez(tmp_path / "x.npz", rows)
    native = rows.astype(rows.dtype.newbyteorder("="))
    assert_same_rows(as_source(saved(tmp_path / "x.npy", rows)), native)
    assert_same_rows(as_source(tmp_path / "x.npz"), native)


def test_some_columns_of_an_npy_file_are_read_without_the_others(tmp_path, monkeypatch):
    source = as_source(saved(tmp_path / "x.npy", X))
    for first, last in ((0, 2), (3, 5), (1, 5)):
        np.testing.assert_array_equal(source.read_columns(2, 9, first, last), X[2:9, first:last])
    seen = []
    monkeypatch.setattr(
        PositionedFile, "read_into", lambda self, buffer, position: seen.append(len(buffer)) or True
    )
    source.read_columns(2, 9, 0, 2)
    assert seen == [2 * X.itemsize] * 7


def test_npy_images_are_flattened(tmp_path):
    source = open_npy(saved(tmp_path / "x.npy", PICTURES))
    assert_same_rows(source, PICTURES.reshape(37, 12))
    assert source.image_shape == (4, 3, 1)
    colours = open_npy(saved(tmp_path / "y.npy", np.zeros((5, 4, 3, 3), np.uint8)))
    assert colours.image_shape == (4, 3, 3)
    assert open_npy(saved(tmp_path / "z.npy", X)).image_shape is None


@pytest.mark.parametrize("array", [X, PICTURES], ids=["table", "pictures"])
def test_npy_in_fortran_order_and_foreign_byte_order_is_read(tmp_path, array):
    flat = array.reshape(37, -1)
    assert_same_rows(open_npy(saved(tmp_path / "f.npy", np.asfortranarray(array))), flat)
    foreign = array.astype(np.dtype(">i2") if array.dtype == np.uint8 else ">f4")
    source = open_npy(saved(tmp_path / "b.npy", foreign))
    assert_same_rows(source, flat.astype(foreign.dtype.newbyteorder("=")))


def test_npy_fingerprint_notices_a_changed_file(tmp_path):
    path = saved(tmp_path / "x.npy", X)
    before = as_source(path).fingerprint()
    assert as_source(path).fingerprint() == before
    os.utime(path, ns=(1, 1))
    assert as_source(path).fingerprint() != before


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (X[:0], "no rows"),
        (X[:, :0], "no features"),
        (X[0], "at least two axes"),
        (np.array([["a", "b"]]), "numbers are needed"),
        (X.astype(complex), "numbers are needed"),
        (np.zeros(3, [("a", "f4"), ("b", "f4")]), "numbers are needed"),
    ],
)
def test_npy_that_is_not_a_table_of_numbers_is_refused(tmp_path, array, words):
    with pytest.raises(SourceError, match=words):
        as_source(saved(tmp_path / "x.npy", array))


def test_npy_missing_empty_truncated_and_invalid_files_are_reported(tmp_path):
    path = saved(tmp_path / "x.npy", X)
    whole = path.read_bytes()
    with pytest.raises(SourceError, match="does not exist"):
        as_source(tmp_path / "y.npy")
    with pytest.raises(SourceError, match="not a file"):
        open_npy(tmp_path / "y.npy")
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="empty"):
        as_source(path)
    path.write_bytes(whole[:-7])
    with pytest.raises(SourceError, match=r"truncated.*740 bytes, but the file has 733"):
        as_source(path)
    for begin in (b"hello", whole[:30]):
        path.write_bytes(begin)
        with pytest.raises(SourceError, match=r"not a complete \.npy"):
            as_source(path)


def test_objects_in_npy_are_refused_and_never_unpickled(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([["a", 1]], object), allow_pickle=True)
    with pytest.raises(SourceError, match="dtype object"):
        as_source(path)


def test_remote_npy_is_fetched_by_ranges(memory):
    for name, array in (("x", X), ("big", X.astype(">f8")), ("pictures", PICTURES)):
        file = io.BytesIO()
        np.save(file, array)
        memory.pipe(f"/data/{name}.npy", file.getvalue())
        source = as_source(f"memory://data/{name}.npy")
        assert_same_rows(source, array.reshape(37, -1).astype(array.dtype.newbyteorder("=")))
    before = source.fingerprint()
    memory.pipe("/data/pictures.npy", file.getvalue()[:-50])
    assert source.fingerprint() != before
    with pytest.raises(SourceError, match="truncated: rows 30 to 37"):
        list(source.blocks(30, 10))


def test_remote_npy_fetches_only_the_requested_rows(memory, monkeypatch):
    file = io.BytesIO()
    np.save(file, X)
    memory.pipe("/x.npy", file.getvalue())
    source, asked = as_source("memory://x.npy"), []
    fetch = type(memory).cat_file
    monkeypatch.setattr(
        type(memory),
        "cat_file",
        lambda self, path, start=None, end=None: (
            asked.append(end - start),
            fetch(self, path, start, end),
        )[1],
    )
    list(source.blocks(32, 4))
    assert asked == [4 * 20, 1 * 20]


def test_unreadable_remote_npy_is_reported(memory):
    with pytest.raises(SourceError, match="cannot be opened"):
        as_source("memory://nothing.npy")
    with pytest.raises(SourceError, match="cannot be reached"):
        as_source("unheard-of://nothing.npy")
    file = io.BytesIO()
    np.save(file, np.asfortranarray(X))
    memory.pipe("/f.npy", file.getvalue())
    with pytest.raises(SourceError, match="column by column"):
        as_source("memory://f.npy")


# ---------------------------------------------------------------- .npz


@pytest.mark.parametrize("key", [None, "x"])
def test_npz_with_one_table_is_read_block_by_block(tmp_path, key, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez(path, labels=np.arange(37), x=X, words=np.array(["a"]))
    source = as_source(path, key=key) if key else as_source(path)
    assert_same_rows(source, X)
    assert source.fingerprint()["key"] == "x"
    assert largest_read(source, monkeypatch) == 4 * X[0].nbytes


def test_npz_compressed_is_loaded_if_it_fits_in_memory(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, pictures=PICTURES)
    source = as_source(path)
    assert_same_rows(source, PICTURES.reshape(37, 12))
    assert source.image_shape == (4, 3, 1)
    assert source.fingerprint()["bytes"] == path.stat().st_size
    monkeypatch.setattr("eigengame._system.memory.free_memory", lambda: 100)
    with pytest.raises(SourceError, match=r"compressed and must be loaded into memory.*savez"):
        as_source(path)


def test_npz_with_several_tables_needs_a_key_and_lists_them(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=X, b=X[:3], c=X[0])
    with pytest.raises(SourceError, match=r"2 arrays.*key=.*a \(37, 5\).*b \(3, 5\).*c \(5,\)"):
        as_source(path)
    with pytest.raises(SourceError, match=r"has no 'd'.*a \(37, 5\)"):
        as_source(path, key="d")
    with pytest.raises(SourceError, match="at least two axes"):
        as_source(path, key="c")
    assert_same_rows(as_source(path, key="b"), X[:3], sizes=(1, 2, 5))


def test_npz_without_tables_damaged_or_invalid_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=X[0], b=np.array(["a"]))
    with pytest.raises(SourceError, match="no array with rows"):
        as_source(path)
    np.savez_compressed(path, a=X)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(SourceError, match=r"not a valid \.npz"):
        as_source(path)
    np.savez_compressed(path, a=np.random.default_rng(0).normal(size=(37, 5000)))
    whole = path.read_bytes()
    path.write_bytes(whole[:900_000] + bytes(60) + whole[900_060:])
    with pytest.raises(SourceError, match="damaged"):
        as_source(path)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_npz_sparse_of_scipy_stays_sparse(tmp_path, form, monkeypatch):
    path = tmp_path / "x.npz"
    rows = sparse.random_array(
        (37, 5), density=0.3, random_state=np.random.default_rng(1), format=form
    )
    sparse.save_npz(path, rows)
    source = as_source(path)
    assert source.sparse
    assert_same_rows(source, rows.toarray())
    assert source.fingerprint()["bytes"] == path.stat().st_size
    with pytest.raises(SourceError, match="without keys"):
        as_source(path, key="data")
    monkeypatch.setattr("eigengame._system.memory.free_memory", lambda: 100)
    with pytest.raises(SourceError, match="must be loaded"):
        as_source(path)


def test_npz_that_only_looks_sparse_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, data=X[0], format=np.array(b"none"), shape=np.array([3, 3]))
    with pytest.raises(SourceError, match="not a sparse matrix"):
        as_source(path)


def test_npz_members_of_other_kinds_are_ignored(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=X)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "hello")
    assert_same_rows(as_source(path), X)


# ---------------------------------------------------------------- raw


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<i2", "u1"])
def test_raw_rows_are_read_in_either_order(tmp_path, order, kind):
    path, rows = tmp_path / "x.bin", (10 * np.abs(X)).astype(kind)
    path.write_bytes(b"head" * 3 + rows.tobytes(order))
    source = as_source(path, columns=5, dtype=kind, offset=12, order=order)
    assert_same_rows(source, rows.astype(rows.dtype.newbyteorder("=")))
    assert isinstance(source, ArrayFileSource)


def test_raw_needs_its_number_of_columns_and_valid_options(tmp_path):
    path = tmp_path / "x.dat"
    path.write_bytes(X.tobytes())
    with pytest.raises(SourceError, match="give columns="):
        as_source(path)
    with pytest.raises(SourceError, match="at least 1"):
        as_source(path, columns=0)
    with pytest.raises(SourceError, match="dtype='flat'"):
        as_source(path, columns=5, dtype="flat")
    with pytest.raises(SourceError, match="numbers are needed"):
        as_source(path, columns=5, dtype="S4")
    with pytest.raises(SourceError, match="order='K'"):
        as_source(path, columns=5, order="K")
    with pytest.raises(SourceError, match="does not belong"):
        as_source(path, rows=5)


def test_a_text_table_is_not_read_as_raw_bytes(tmp_path):
    path = tmp_path / "x.dat"
    np.savetxt(path, X, fmt="%.18g")
    assert_same_rows(as_source(path), X.astype(np.float64))
    text = "".join(f"{a:7.3f}{b:8.3f}\n" for a, b in X[:, :2])
    path.write_text(text)
    assert len(text) % 8 == 0
    for options in ({"columns": 2}, {"columns": 1, "dtype": "float64"}, {"offset": 16}):
        with pytest.raises(SourceError, match=r"is text, not raw binary.*rename it to \.txt"):
            as_source(path, **options)
    assert as_source(path, columns=16, dtype="uint8").shape == (37, 16)
    path.write_text("height,weight\n1,2\n3,4\n")
    chosen = as_source(path, columns=["weight"], delimiter=",")
    assert_same_rows(chosen, np.array([[2.0], [4.0]]), sizes=(1, 2))


def test_a_remote_text_table_is_not_read_as_raw_bytes(memory):
    memory.pipe("/x.dat", b"1.5 2.5\n3.5 4.5\n")
    (block,) = as_source("memory://x.dat").blocks(0, 8)
    np.testing.assert_array_equal(block.values, [[1.5, 2.5], [3.5, 4.5]])
    with pytest.raises(SourceError, match="is text, not raw binary"):
        as_source("memory://x.dat", columns=2)


def test_raw_with_an_incomplete_row_is_refused(tmp_path):
    path = tmp_path / "x.raw"
    path.write_bytes(X.tobytes()[:-3])
    with pytest.raises(SourceError, match=r"737 bytes.*36 rows.*17 bytes left over.*truncated"):
        as_source(path, columns=5)
    with pytest.raises(SourceError, match="truncated"):
        as_source(path, columns=5, offset=1000)
    with pytest.raises(SourceError, match="no rows"):
        as_source(path, columns=5, offset=737)


def test_remote_raw_is_fetched_by_ranges(memory):
    memory.pipe("/x.bin", b"head" + X.tobytes())
    assert_same_rows(as_source("memory://x.bin", columns=5, offset=4), X)
    with pytest.raises(SourceError, match="left over"):
        as_source("memory://x.bin", columns=5)
    with pytest.raises(SourceError, match="cannot be opened"):
        as_source("memory://y.bin", columns=5)
    with pytest.raises(SourceError, match="by rows"):
        as_source("memory://x.bin", columns=5, offset=4, order="F")


# ---------------------------------------------------------------- idx


@pytest.mark.parametrize(
    ("kind", "code"), [("u1", 8), ("i1", 9), ("i2", 11), ("i4", 12), ("f4", 13), ("f8", 14)]
)
@pytest.mark.parametrize("ending", ["images-idx3-ubyte", "images-idx3-ubyte.gz"])
def test_idx_of_every_type_plain_and_gzipped(tmp_path, kind, code, ending):
    path, array = tmp_path / ending, PICTURES.astype(kind)
    raw = idx(array, code)
    path.write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
    source = as_source(path)
    assert_same_rows(source, array.reshape(37, 12))
    assert_read_on_a_thread(source, array.reshape(37, 12))
    assert source.image_shape == (4, 3, 1)
    assert source.fingerprint()["modified"] == path.stat().st_mtime_ns


def test_idx_is_read_block_by_block(tmp_path, monkeypatch):
    path = tmp_path / "x.idx"
    path.write_bytes(idx(PICTURES))
    source = as_source(path)
    assert isinstance(source, ArrayFileSource)
    assert largest_read(source, monkeypatch) == 4 * PICTURES[0].nbytes


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_invalid_idx_and_idx_of_labels_are_refused(tmp_path, pack):
    path = tmp_path / "x.idx"
    for raw, words in (
        (b"\0\1\10\3abcd", "begins with 00 01 08 03"),
        (b"\0\0\7\3abcd", "not an idx file"),
        (b"\0\0", "not an idx file"),
        (idx(PICTURES)[:9], "truncated within its header"),
        (idx(PICTURES[:, 0, 0]), "look like labels"),
        (idx(PICTURES[:0]), "no rows"),
    ):
        path.write_bytes(pack(raw))
        with pytest.raises(SourceError, match=words):
            as_source(path)


def test_truncated_idx_is_reported(tmp_path):
    path, raw = tmp_path / "x.idx", idx(PICTURES)
    path.write_bytes(raw[:-5])
    with pytest.raises(SourceError, match="truncated"):
        as_source(path)
    path = tmp_path / "x.idx.gz"
    path.write_bytes(gzip.compress(raw[:-5]))
    source = as_source(path)
    assert len(next(source.blocks(0, 16))) == 16
    with pytest.raises(SourceError, match=r"truncated.*after row 32.*5 bytes early"):
        list(source.blocks(0, 16))
    noise = np.random.default_rng(0).integers(0, 256, (37, 40, 30), dtype=np.uint8)
    packed = gzip.compress(idx(noise))
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(SourceError, match="truncated or damaged"):
        list(as_source(path).blocks(0, 16))
    path.write_bytes(packed[:5])
    with pytest.raises(SourceError, match="cannot be decompressed"):
        as_source(path)


def test_remote_files_of_local_formats_are_refused():
    for path in ("memory://x.npz", "memory://x-ubyte"):
        with pytest.raises(SourceError, match="local disk only"):
            as_source(path)


def test_real_mnist_is_read_from_its_own_file():
    source = as_source(real("mnist/train-images-idx3-ubyte.gz"))
    assert source.shape == (60_000, 784)
    assert source.image_shape == (28, 28, 1)
    total = sum(int(block.values.sum(dtype=np.int64)) for block in source.blocks(0, 4096))
    assert total / (60_000 * 784 * 255) == pytest.approx(0.1307, abs=5e-5)
    (last,) = source.blocks(59_990, 4096)
    assert last.values.shape == (10, 784)
    assert last.values.dtype == np.uint8
    with pytest.raises(SourceError, match="60000: these look like labels"):
        as_source(real("mnist/train-labels-idx1-ubyte.gz"))
