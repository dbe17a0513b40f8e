"""Crops of photographs: repeatable, and in the form that the network expects."""

import numpy as np
import pytest

from eigengame.sources import SourceError
from reproduction.experiments.resnet import photographs
from reproduction.experiments.resnet.photographs import MEANS, UNIT, Photographs

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")

SIDE = 14


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five photographs of noise with the short side for crops of 14."""
    folder, rng = tmp_path_factory.mktemp("photographs"), np.random.default_rng(0)
    for i in range(5):
        pixels = rng.integers(0, 256, (16, 20 + i, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"n0000000{i}_a_thing_{i}.jpg", quality=95)
    return folder


def pixels_of(folder, i):
    with Image.open(folder / f"n0000000{i}_a_thing_{i}.jpg") as picture:
        return np.asarray(picture.convert("RGB"), np.float64)


def as_taken(cut):
    return np.moveaxis((cut[..., ::-1] - MEANS) / UNIT, -1, 0)


def test_the_first_copy_is_the_centre_in_blue_green_and_red_less_means(folder):
    found = Photographs(folder, size=SIDE).crop(2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, as_taken(pixels_of(folder, 2)[1:15, 4:18]), atol=1e-5)


def test_other_copies_are_crops_of_the_same_photograph_some_flipped(folder):
    rows, pixels = Photographs(folder, size=SIDE, copies=9), pixels_of(folder, 1)
    cuts = [pixels[t : t + SIDE, l : l + SIDE] for t in range(3) for l in range(8)]
    plain = [as_taken(cut) for cut in cuts]
    flipped = [as_taken(cut[:, ::-1]) for cut in cuts]
    seen = [rows.crop(1, copy) for copy in range(9)]
    among = [
        [any(np.allclose(one, cut, atol=1e-5) for cut in all_) for all_ in (plain, flipped)]
        for one in seen
    ]
    assert all(any(where) for where in among)
    assert 0 < sum(where[1] for where in among) < 9
    assert len({one.tobytes() for one in seen}) > 4


def test_every_pass_sees_the_same_rows_and_another_seed_others(folder):
    rows = Photographs(folder, size=SIDE, copies=3)
    again, other = (
        Photographs(folder, size=SIDE, copies=3),
        Photographs(folder, size=SIDE, copies=3, seed=1),
    )
    assert len(rows) == 15
    for i in range(len(rows)):
        np.testing.assert_array_equal(rows[i][0], rows[i][0])
        np.testing.assert_array_equal(rows[i][0], again[i][0])
        assert rows[i][1] == again[i][1]
    assert any(not np.array_equal(rows[i][0], other[i][0]) for i in range(len(rows)))


def test_labels_are_indices_among_all_classes(folder):
    rows = Photographs(folder, size=SIDE, count=2, copies=2)
    assert rows.names == ["a thing 0", "a thing 2"]
    assert sorted(rows[i][1] for i in range(len(rows))) == [0, 0, 2, 2]


def test_photographs_are_resized_for_crops_of_another_size(folder):
    rows = Photographs(folder, size=7)
    assert rows.crop(4, 0).shape == (3, 7, 7)
    whole = as_taken(pixels_of(folder, 4)).mean(axis=(1, 2))
    # Means over squares of pixels: the centre of a picture of noise has nearly the mean of all of it.
    np.testing.assert_allclose(rows.crop(4, 0).mean(axis=(1, 2)), whole, atol=0.3)


def test_a_folder_without_photographs_is_an_error_that_names_the_files(tmp_path, monkeypatch):
    with pytest.raises(SourceError, match=r"wnid_label\.jpg.*EIGENGAME_DATA"):
        Photographs(tmp_path)
    with pytest.raises(SourceError, match=r"has no imagenet_sample_1000: give --data FOLDER"):
        photographs.folder_of(tmp_path)
    (tmp_path / photographs.PHOTOGRAPHS).mkdir()
    monkeypatch.setenv("EIGENGAME_DATA", str(tmp_path))
    with pytest.raises(SourceError, match=r"has no resnet50_imagenet"):
        photographs.folder_of()


def test_a_file_that_is_not_an_image_is_named(tmp_path):
    (tmp_path / "n00000000_broken.jpg").write_bytes(b"no photograph")
    with pytest.raises(SourceError, match=r"n00000000_broken\.jpg is not an image .*: repair or"):
        Photographs(tmp_path, size=SIDE)
