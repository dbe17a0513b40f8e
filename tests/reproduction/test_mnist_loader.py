import gzip
import hashlib
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from eigengame.sources import SourceError

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 4), dtype=np.uint8)
FILE = struct.pack(">4B3I", 0, 0, 8, 3, 5, 2, 2) + PIXELS.tobytes()


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A world in which MNIST has five images of four pixels, and is nowhere yet."""
    monkeypatch.setattr(_mnist, "MD5", hashlib.md5(PIXELS).hexdigest())
    monkeypatch.setattr(_mnist, "CHECKOUT", tmp_path / "project")
    monkeypatch.delenv("EIGENGAME_DATA", raising=False)
    return tmp_path


def openml(monkeypatch, answer):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", answer)


def no_network(*_, **__):
    raise OSError("no route to host")


@pytest.mark.parametrize("name", _mnist.NAMES)
def test_a_file_or_its_folder_is_read_gzipped_or_not(small, name):
    (small / name).write_bytes(gzip.compress(FILE) if name.endswith(".gz") else FILE)
    for where in (small, small / name, str(small)):
        seen = _mnist.load(where)
        assert seen.dtype == np.float32
        np.testing.assert_array_equal(seen, PIXELS.astype(np.float32) / np.float32(255))


def test_the_variable_comes_before_the_checkout_and_the_checkout_before_openml(small, monkeypatch):
    openml(monkeypatch, no_network)
    named, beside = small / "data" / "mnist", small / "shared" / "data" / "mnist"
    for folder in (named, beside):
        folder.mkdir(parents=True)
        (folder / _mnist.NAMES[0]).write_bytes(gzip.compress(FILE))
    assert _mnist.found() is None, "not a checkout: there is no pyproject.toml"
    (small / "project").mkdir()
    (small / "project" / "pyproject.toml").touch()
    assert _mnist.found() == beside / _mnist.NAMES[0]
    monkeypatch.setenv("EIGENGAME_DATA", str(small / "data"))
    assert _mnist.found() == named / _mnist.NAMES[0]
    assert _mnist.load().shape == (5, 4)


def test_openml_gives_the_first_images_of_its_copy(small, monkeypatch):
    asked = {}

    def answer(name, **options):
        asked.update(options, name=name)
        return SimpleNamespace(data=np.concatenate([PIXELS, PIXELS]).astype(float))

    monkeypatch.setattr(_mnist, "IMAGES", 5)
    openml(monkeypatch, answer)
    np.testing.assert_array_equal(_mnist.load(), PIXELS.astype(np.float32) / np.float32(255))
    assert asked["name"] == "mnist_784"
    assert asked["as_frame"] is False


def test_no_network_is_said_with_the_fix(small, monkeypatch):
    openml(monkeypatch, no_network)
    with pytest.raises(SourceError, match=r"no route to host.*--data PATH.*EIGENGAME_DATA"):
        _mnist.load()


def test_another_file_is_refused_by_its_sum(small):
    changed = bytearray(FILE)
    changed[-1] ^= 1
    (small / _mnist.NAMES[1]).write_bytes(changed)
    with pytest.raises(SourceError, match="not MNIST's training set: 5 x 4 pixels with md5"):
        _mnist.load(small)


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_place_without_the_file_is_an_error_and_never_a_download(small, monkeypatch, by):
    openml(monkeypatch, no_network)
    (small / "mnist").mkdir()
    if by == "variable":
        monkeypatch.setenv("EIGENGAME_DATA", str(small))
    with pytest.raises(SourceError, match=r"has no train-images-idx3-ubyte.gz.*--data PATH"):
        _mnist.load(small / "mnist" if by == "argument" else None)
    with pytest.raises(SourceError, match="does not exist"):
        _mnist.load(small / "nowhere")


def test_the_real_images_are_as_many_as_the_paper_says():
    if _mnist.found() is None:
        pytest.skip("MNIST is not on this machine: set EIGENGAME_DATA")
    seen = _mnist.load()
    assert seen.shape == (60_000, 784)
    assert (seen.min(), seen.max()) == (0, 1)
