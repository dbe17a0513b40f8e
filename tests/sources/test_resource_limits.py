"""Small files that unpack to gigabytes are refused before the memory is used."""

import gzip
import pickle
import resource
import subprocess
import sys
import threading
import zipfile

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy import sparse

from eigengame import as_source
from eigengame.sources import SourceError
from eigengame.sources._memory import Budget

KIB = 2**10
X = np.arange(4000.0).reshape(100, 40)


def csv_of_one_line(path, size, level=9):
    """Write a gzipped text table with one line of about `size` bytes."""
    with gzip.open(path, "wb", compresslevel=level) as file:
        for _ in range(size // 2**20):
            file.write(b"1," * 2**19)
        file.write(b"1\n")
    return path


def test_a_long_line_is_refused_with_its_number(tmp_path):
    path = csv_of_one_line(tmp_path / "x.csv.gz", 2**20)
    with pytest.raises(SourceError, match=r"x\.csv\.gz: line 1 and its fields.*max_bytes="):
        as_source(path, max_bytes=64 * KIB)
    assert as_source(path, header=False).shape == (None, 2**19 + 1)


@pytest.mark.parametrize("delimiter", [",", " "])
def test_a_long_line_after_the_sample_is_refused(tmp_path, delimiter):
    path = tmp_path / "x.csv"
    good = delimiter.join("12")
    path.write_text(f"{good}\n" * 100 + delimiter.join("1" * 2**21) + "\n")
    source = as_source(path, max_bytes=2**20, header=False)
    with pytest.raises(SourceError, match=r"x\.csv: .*line"):
        list(source.blocks(0, 10))


def test_the_sample_of_lines_is_limited_too(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text((",".join(["1.5"] * 100) + "\n") * 64)
    source = as_source(path, header=False, max_bytes=2**14)
    assert len(source._format.sample) < 8
    assert np.vstack([block.values for block in source.blocks(0, 10)]).shape == (64, 100)


@pytest.mark.parametrize("save", [np.savez_compressed, sparse.save_npz])
def test_an_archive_that_must_be_loaded_is_limited(tmp_path, save):
    path = tmp_path / "x.npz"
    save(path, sparse.csr_array(X) if save is sparse.save_npz else X)
    with pytest.raises(SourceError, match=r"x\.npz.*more than the limit of .*max_bytes="):
        as_source(path, max_bytes=KIB)
    assert as_source(path, max_bytes=2**20).shape == X.shape
    np.savez(path, X)
    assert as_source(path, max_bytes=KIB).shape == X.shape  # read in blocks


def test_a_sparse_matrix_of_few_entries_and_many_rows_is_limited(tmp_path):
    path = tmp_path / "x.npz"
    sparse.save_npz(path, sparse.coo_array(([1.0], ([5], [2])), shape=(2**40, 3)))
    with pytest.raises(SourceError, match=r"x\.npz.*more than the limit"):
        as_source(path)


def test_a_header_of_gigabytes_is_not_read(tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\2\0" + (2**24).to_bytes(4, "little") + bytes(2**24))
    with pytest.raises(
        SourceError, match=r"x\.npz:x\.npy is not a complete \.npy file \(its header"
    ):
        as_source(path)


@pytest.mark.parametrize("kind", ["h5", "zarr"])
def test_a_chunk_that_unpacks_to_much_is_refused(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=X, chunks=(100, 40), compression="gzip")
    else:
        zarr = pytest.importorskip("zarr")
        zarr.create_array(path, data=X, chunks=(100, 40))
    with pytest.raises(
        SourceError, match=r"chunk of shape \(100, 40\).*smaller chunks.*max_bytes="
    ):
        as_source(path, max_bytes=KIB)
    assert as_source(path).shape == X.shape


def test_row_pointers_and_matrices_by_columns_of_h5ad_are_limited(tmp_path):
    for form in ("csr", "csc"):
        matrix = sparse.csr_array(X).asformat(form)
        with h5py.File(tmp_path / f"{form}.h5ad", "w") as file:
            group = file.create_group("X")
            group.attrs.update({"encoding-type": f"{form}_matrix", "shape": X.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(matrix, part)
        with pytest.raises(SourceError, match=rf"{form}\.h5ad.*more than the limit"):
            as_source(tmp_path / f"{form}.h5ad", max_bytes=300)


def test_a_large_image_is_refused_before_it_is_decoded(tmp_path):
    Image.new("L", (3000, 2000)).save(tmp_path / "large.png")
    Image.new("L", (30, 20)).save(tmp_path / "small.png")
    source = as_source(tmp_path, size=(8, 8), max_bytes=2**20)
    with pytest.raises(SourceError, match=r"large\.png has 2000 x 3000 pixels.*max_bytes="):
        source.read(0, 2)
    assert as_source(tmp_path, size=(8, 8)).read(0, 2).shape == (2, 64)


def test_images_decoded_at_the_same_time_share_a_budget():
    budget, together, most = Budget(10), [0], [0]
    lock = threading.Lock()

    def work():
        with budget.hold(4):
            with lock:
                together[0] += 1
                most[0] = max(most[0], together[0])
            threading.Event().wait(0.01)
            with lock:
                together[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert most[0] == 2
    with budget.hold(99):  # alone
        assert budget._used == 10
    assert pickle.loads(pickle.dumps(budget))._size == 10


def test_postscript_named_png_does_not_reach_a_program(tmp_path, monkeypatch):
    from PIL import EpsImagePlugin

    def started(*_, **__):
        raise AssertionError("Ghostscript was started")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", started)
    Image.new("RGB", (8, 8)).save(tmp_path / "x.eps")
    (tmp_path / "x.eps").rename(tmp_path / "x.png")
    with pytest.raises(SourceError, match=r"x\.png cannot be read as an image"):
        as_source(tmp_path)
    with pytest.raises(SourceError, match=r"x\.png cannot be read as an image"):
        as_source(tmp_path, size=(8, 8), grey=False).read(0, 1)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "8G"])
def test_a_limit_that_is_not_a_number_of_bytes_is_refused(tmp_path, value):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    with pytest.raises(SourceError, match="max_bytes="):
        as_source(tmp_path / "x.csv", max_bytes=value, header=False)


BOMBS = """
import resource, sys
from eigengame.sources import SourceError, as_source
try:
    source = as_source(sys.argv[1], **({"size": (8, 8)} if sys.argv[2] == "images" else {}))
    source.read(0, source.shape[0]) if sys.argv[2] == "images" else list(source.blocks(0, 8))
except SourceError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def images(path):
    path.mkdir()
    for number in range(3):
        Image.new("RGB", (13000, 13000)).save(path / f"{number}.png", compress_level=1)
    return path


def grey_images(path):
    path.mkdir()
    for number in range(8):
        Image.new("L", (13000, 13000)).save(path / f"{number}.png", compress_level=1)
    return path


def array(path):
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        shape = {"descr": "<f4", "fortran_order": False, "shape": (5 * 2**10, 2**18)}
        np.lib.format.write_array_header_1_0(file, shape)
        for _ in range(5 * 2**10):
            file.write(bytes(2**20))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make", "refused"),
    [
        ("x.csv.gz", lambda path: csv_of_one_line(path, 2**30, level=1), True),
        ("images", images, True),
        ("images", grey_images, False),  # each is below the limit, and they share a budget
        ("x.npz", array, True),
    ],
)
def test_bombs_of_full_size_need_little_memory(tmp_path, name, make, refused):
    path = make(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, str(path), name],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34)),
    )
    *messages, peak = done.stdout.splitlines()
    assert ["max_bytes=" in message for message in messages] == [True] * refused
    assert int(peak) < 1200
