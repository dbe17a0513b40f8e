import gzip
import hashlib
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from eigengame.sources import SourceError
from reproduction import mnist_images

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 4), dtype=np.uint8)
FILE = struct.pack(">4B3I", 0, 0, 8, 3, 5, 2, 2) + PIXELS.tobytes()


@pytest.fixture
def small(monkeypatch, tmp_path):
    """MNIST with five images of four pixels, and no data on the machine."""
    monkeypatch.setattr(mnist_images, "MD5", hashlib.md5(PIXELS).hexdigest())
    monkeypatch.setattr(mnist_images, "BESIDE", tmp_path / "shared" / "data")
    monkeypatch.delenv("EIGENGAME_DATA", raising=False)
    return tmp_path


def openml(monkeypatch, answer):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", answer)


def no_network(*_, **__):
    raise OSError("no route to host")


@pytest.mark.parametrize("name", mnist_images.NAMES)
def test_a_file_or_its_folder_is_read_gzipped_or_not(small, name):
    (small / name).write_bytes(gzip.compress(FILE) if name.endswith(".gz") else FILE)
    for where in (small, small / name, str(small)):
        seen = mnist_images.load(where)
        assert seen.dtype == np.float32
        np.testing.assert_array_equal(seen, PIXELS.astype(np.float32) / np.float32(255))


def test_the_variable_comes_before_the_folder_beside_and_that_before_openml(small, monkeypatch):
    openml(monkeypatch, no_network)
    assert mnist_images.find_file() is None
    named, beside = small / "data" / "mnist", small / "shared" / "data" / "mnist"
    for folder in (named, beside):
        folder.mkdir(parents=True)
        (folder / mnist_images.NAMES[0]).write_bytes(gzip.compress(FILE))
    assert mnist_images.find_file() == beside / mnist_images.NAMES[0]
    monkeypatch.setenv("EIGENGAME_DATA", str(small / "data"))
    assert mnist_images.find_file() == named / mnist_images.NAMES[0]
    assert mnist_images.load().shape == (5, 4)


def test_openml_returns_its_first_images(small, monkeypatch):
    asked = {}

    def answer(name, **options):
        asked.update(options, name=name)
        return SimpleNamespace(data=np.concatenate([PIXELS, PIXELS]).astype(float))

    monkeypatch.setattr(mnist_images, "IMAGES", 5)
    openml(monkeypatch, answer)
    np.testing.assert_array_equal(mnist_images.load(), PIXELS.astype(np.float32) / np.float32(255))
    assert asked["name"] == "mnist_784"
    assert asked["as_frame"] is False


def test_a_missing_network_is_an_error_with_the_fix(small, monkeypatch):
    openml(monkeypatch, no_network)
    with pytest.raises(SourceError, match=r"no route to host.*--data PATH.*EIGENGAME_DATA"):
        mnist_images.load()


def test_another_file_is_refused_by_its_checksum(small):
    changed = bytearray(FILE)
    changed[-1] ^= 1
    (small / mnist_images.NAMES[1]).write_bytes(changed)
    with pytest.raises(SourceError, match="not the training set of MNIST: 5 x 4 pixels with md5"):
        mnist_images.load(small)


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_folder_without_the_file_is_an_error_and_not_a_download(small, monkeypatch, by):
    openml(monkeypatch, no_network)
    (small / "mnist").mkdir()
    if by == "variable":
        monkeypatch.setenv("EIGENGAME_DATA", str(small))
    with pytest.raises(SourceError, match=r"has no train-images-idx3-ubyte.gz.*--data PATH"):
        mnist_images.load(small / "mnist" if by == "argument" else None)
    with pytest.raises(SourceError, match="does not exist"):
        mnist_images.load(small / "nowhere")


def test_the_readings_are_the_images_with_and_without_their_mean():
    images = PIXELS.astype(np.float32) / np.float32(255)
    seen = mnist_images.readings(images)
    assert list(seen) == ["centred", "uncentred"]
    assert seen["uncentred"] is images
    assert seen["centred"].dtype == np.float32
    expected = images - images.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(seen["centred"], expected, atol=np.finfo(np.float32).eps)


def test_the_real_images_have_the_expected_shape():
    if mnist_images.find_file() is None:
        pytest.skip("MNIST is not on this machine: set EIGENGAME_DATA")
    seen = mnist_images.load()
    assert seen.shape == (60_000, 784)
    assert (seen.min(), seen.max()) == (0, 1)
