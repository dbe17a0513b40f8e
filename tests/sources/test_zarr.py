"""Zarr stores of both versions, read in blocks, each chunk once."""

import json
import os

import numpy as np
import pytest

from eigengame.sources import SourceError, as_source
from eigengame.sources.zarr_store import ZarrSource, from_array
from tests.sources.same_rows import assert_read_on_a_thread, assert_same_rows

zarr = pytest.importorskip("zarr")

N, D = 37, 5
X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def version(request):
    return request.param


def write(path, data=X, chunks=(8, D), version=3, **options):
    array = zarr.create_array(
        store=str(path),
        shape=data.shape,
        chunks=chunks,
        dtype=data.dtype,
        zarr_format=version,
        **options,
    )
    array[...] = data
    return path


@pytest.mark.parametrize("chunks", [(1, D), (8, D), (10, 2), (64, D)])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "i2", "u1"])
def test_an_array_is_read_whatever_its_chunks_and_type(tmp_path, version, chunks, kind):
    if kind == ">f4" and version == 3 and not hasattr(zarr, "dtype"):
        pytest.skip("zarr before 3.1 does not write big-endian numbers in format 3")
    rows = (10 * np.abs(X)).astype(kind)
    source = as_source(write(tmp_path / "x.zarr", rows, chunks, version))
    assert_same_rows(source, rows.astype(rows.dtype.newbyteorder("=")), sizes=(3, 8, 100))


def test_shards_are_read(tmp_path):
    source = as_source(write(tmp_path / "x.zarr", chunks=(4, D), shards=(16, D)))
    assert_same_rows(source, X)


def test_images_are_flattened_and_the_reader_thread_can_read(tmp_path, version):
    pictures = np.arange(N * 12, dtype=np.uint8).reshape(N, 4, 3)
    source = as_source(write(tmp_path / "x.zarr", pictures, (8, 4, 3), version))
    assert_same_rows(source, pictures.reshape(N, 12))
    assert_read_on_a_thread(source, pictures.reshape(N, 12))
    assert source.image_shape == (4, 3, 1)


def test_each_chunk_is_read_once_and_never_all_at_once(tmp_path):
    array, asked = zarr.open(write(tmp_path / "x.zarr"), mode="r"), []

    class Counted:
        shape, dtype, chunks = array.shape, array.dtype, array.chunks

        def __getitem__(self, rows):
            asked.append((rows.start, rows.stop))
            return array[rows]

    for size in (3, 8, 20):
        asked.clear()
        found = [block.values for block in ZarrSource(Counted(), "counted").blocks(5, size)]
        np.testing.assert_array_equal(np.concatenate(found), X[5:])
        assert [row for span in asked for row in range(*span)] == list(range(5, N))
        assert all(end % 8 == 0 or end == N for _, end in asked)
        assert all(end - begin <= max(size, 8) for begin, end in asked)


def test_a_key_names_an_array_or_a_group(tmp_path, version):
    path = tmp_path / "x.zarr"
    group = zarr.create_group(store=str(path), zarr_format=version)
    for key, data in (("labels", X[:, 0]), ("deep/a", X)):
        made = group.create_array(key, shape=data.shape, dtype=data.dtype)
        made[...] = data
    assert_same_rows(as_source(path), X)
    made = group.create_array("b", shape=X.shape, dtype=X.dtype)
    made[...] = 2 * X
    assert_same_rows(as_source(path, key="b"), 2 * X)
    assert_same_rows(as_source(path, key="deep/a"), X)
    assert_same_rows(as_source(path, key="/deep"), X)
    with pytest.raises(SourceError, match=r"2 arrays.*key=.*labels \(37,\)"):
        as_source(path)
    with pytest.raises(SourceError, match=r"no 'c'.*deep/a \(37, 5\) float32"):
        as_source(path, key="c")
    with pytest.raises(SourceError, match="two axes"):
        as_source(path, key="labels")
    assert_same_rows(as_source(zarr.open(path, mode="r"), key="b"), 2 * X)
    with pytest.raises(SourceError, match="without keys"):
        from_array(zarr.open(path, mode="r")["b"], key="c")


def test_a_folder_without_the_ending_is_recognised_by_its_files(tmp_path, version):
    assert_same_rows(as_source(write(tmp_path / "store", version=version)), X)
    group = zarr.create_group(store=str(tmp_path / "group"), zarr_format=version)
    group.create_array("X", shape=X.shape, dtype=X.dtype)[...] = X
    assert_same_rows(as_source(tmp_path / "group"), X)


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_remote_stores_are_read_by_fsspec(tmp_path, version, scheme):
    fsspec = pytest.importorskip("fsspec")
    write(tmp_path / "x.zarr", version=version)
    url = f"file://{tmp_path}/x.zarr"
    if scheme == "memory":
        files = fsspec.filesystem("memory")
        files.put(str(tmp_path / "x.zarr"), "/far.zarr", recursive=True)
        url = "memory://far.zarr"
    source = as_source(url)
    assert_same_rows(source, X)
    assert_read_on_a_thread(source, X)
    assert source.fingerprint() == as_source(url).fingerprint()
    if scheme == "memory":
        files.rm("/far.zarr", recursive=True)
        with pytest.raises(SourceError, match="cannot be opened as a Zarr store"):
            as_source(url)


def test_the_fingerprint_notices_a_changed_chunk(tmp_path, version):
    path = write(tmp_path / "x.zarr", version=version)
    before = as_source(path).fingerprint()
    assert as_source(path).fingerprint() == before
    zarr.open(path, mode="r+")[9] = 0
    assert as_source(path).fingerprint() != before


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        ((0, 5), "f4", "no rows"),
        ((5,), "f4", "two axes"),
        ((5, 5), "S1", "numbers are needed"),
        ((5, 5), "c8", "numbers are needed"),
    ],
)
def test_data_that_is_not_a_table_is_refused(tmp_path, shape, kind, words):
    zarr.create_array(store=str(tmp_path / "x.zarr"), shape=shape, dtype=kind, zarr_format=2)
    with pytest.raises(SourceError, match=words):
        as_source(tmp_path / "x.zarr")


def test_missing_and_invalid_stores_are_reported(tmp_path):
    with pytest.raises(SourceError, match="does not exist"):
        as_source(tmp_path / "x.zarr")
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(SourceError, match="cannot be opened as a Zarr store"):
        as_source(tmp_path / "x.zarr")
    zarr.create_group(store=str(tmp_path / "y.zarr"))
    with pytest.raises(SourceError, match="it contains nothing"):
        as_source(tmp_path / "y.zarr")


def test_a_corrupt_chunk_is_named_by_its_rows(tmp_path, version):
    path = write(tmp_path / "x.zarr", version=version)
    (path / ("c/2/0" if version == 3 else "2.0")).write_bytes(os.urandom(3))
    blocks = as_source(path).blocks(0, 8)
    np.testing.assert_array_equal(next(blocks).values, X[:8])
    next(blocks)
    with pytest.raises(SourceError, match=r"x\.zarr: rows 16 to 24 cannot be read.*damaged"):
        next(blocks)


def test_a_missing_codec_is_named(tmp_path, version):
    path = write(tmp_path / "x.zarr", version=version)
    about = path / ("zarr.json" if version == 3 else ".zarray")
    facts = json.loads(about.read_text())
    if version == 3:
        facts["codecs"].append({"name": "unheard-of", "configuration": {}})
    else:
        facts["compressor"] = {"id": "unheard-of"}
    about.write_text(json.dumps(facts))
    with pytest.raises(SourceError, match="unheard-of"):
        list(as_source(path).blocks(0, 8))
