"""Folders of images and tables, and folders of unknown content."""

import itertools
import os
import shutil
import sys

import numpy as np
import pytest

from eigengame.sources import SourceError, as_source
from eigengame.sources.folders import open_folder
from eigengame.sources.image_folder import ImageFolder
from tests.sources.same_rows import assert_read_on_a_thread, assert_same_rows, real

Image = pytest.importorskip("PIL.Image")

N, HEIGHT, WIDTH = 17, 6, 4
PIXELS = np.random.default_rng(0).integers(0, 256, (N, HEIGHT, WIDTH, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with subfolders, whose names sort in the order of the images."""
    for i, picture in enumerate(PIXELS):
        place = tmp_path / "pictures" / f"class{i // 6}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(place / f"{i:02d}.{'PNG' if i % 2 else 'png'}")
    (tmp_path / "pictures" / "README.txt").write_text("hello")
    (tmp_path / "pictures" / ".hidden.png").write_text("no picture")
    return tmp_path / "pictures"


def test_images_are_rows_in_the_order_of_their_names(folder):
    source = as_source(folder, size=(HEIGHT, WIDTH))
    assert_same_rows(source, PIXELS.reshape(N, -1))
    assert_read_on_a_thread(source, PIXELS.reshape(N, -1))
    assert source.image_shape == (HEIGHT, WIDTH, 3)
    assert source.paths[3].endswith("class0/03.PNG")
    assert source.row_ids()[3] == os.path.join("class0", "03.PNG")


def test_images_are_resized_and_made_grey(folder):
    source = as_source(folder, size=(3, 2), grey=True)
    truth = [
        np.asarray(Image.fromarray(one).convert("L").resize((2, 3), Image.Resampling.BICUBIC))
        for one in PIXELS
    ]
    assert source.image_shape == (3, 2, 1)
    assert_same_rows(source, np.stack(truth).reshape(N, 6))


def test_images_of_one_size_keep_it(folder):
    source = as_source(folder)
    assert source.image_shape == (HEIGHT, WIDTH, 3)
    assert_same_rows(source, PIXELS.reshape(N, -1))


@pytest.mark.parametrize("mode", ["L", "1", "LA"])
def test_grey_images_have_one_channel(tmp_path, mode):
    grey = np.where(PIXELS[:, :, :, 0] > 127, 255, 0).astype(np.uint8)
    for i, picture in enumerate(grey):
        Image.fromarray(picture).convert(mode).save(tmp_path / f"{i:02d}.png")
    source = as_source(tmp_path)
    assert source.image_shape == (HEIGHT, WIDTH, 1)
    assert_same_rows(source, grey.reshape(N, -1))
    assert as_source(tmp_path, grey=False).image_shape == (HEIGHT, WIDTH, 3)
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "colour.png")
    assert as_source(tmp_path).image_shape == (HEIGHT, WIDTH, 3)


def test_images_of_several_sizes_need_a_size(folder):
    Image.new("RGB", (9, 8)).save(folder / "other.png")
    message = r"2 sizes, height x width: 6 x 4 \(17\), 8 x 9 \(1\)\. Give .*size=\(64, 64\)"
    with pytest.raises(SourceError, match=message):
        as_source(folder)
    assert as_source(folder, size=(6, 4)).shape == (N + 1, 6 * 4 * 3)


def test_images_of_more_than_8_bits_are_refused(tmp_path):
    Image.fromarray(np.full((HEIGHT, WIDTH), 40000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(SourceError, match=r"deep\.png cannot be read .*more than 8 bits"):
        as_source(tmp_path)
    with pytest.raises(SourceError, match="more than 8 bits"):
        as_source(tmp_path, size=(3, 3), grey=True).read(0, 1)


def test_files_are_decoded_as_images_only_whatever_their_names(tmp_path):
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "x.eps")
    (tmp_path / "x.eps").rename(tmp_path / "x.png")
    with pytest.raises(SourceError, match=r"x\.png cannot be read as an image"):
        as_source(tmp_path)


def test_palettes_transparency_and_grey_files_are_read_as_colours(tmp_path):
    for mode in ("L", "P", "RGBA", "1", "LA", "CMYK"):
        picture = Image.new("RGB", (WIDTH, HEIGHT), (255, 255, 255)).convert(mode)
        picture.save(tmp_path / f"{mode}.tif" if mode == "CMYK" else tmp_path / f"{mode}.png")
    source = as_source(tmp_path, size=(HEIGHT, WIDTH))
    np.testing.assert_array_equal(source.read(0, 6), np.full((6, HEIGHT * WIDTH * 3), 255))


def test_only_the_requested_images_are_opened(folder, monkeypatch):
    source, opened, plain = ImageFolder(folder), [], Image.open
    monkeypatch.setattr(Image, "open", lambda path, **how: (opened.append(path), plain(path))[1])
    next(source.blocks(5, 4))
    assert sorted(opened) == source.paths[5:9]


def test_an_unreadable_image_is_named(folder):
    whole = (folder / "class1" / "07.PNG").read_bytes()
    source = ImageFolder(folder)
    for bad in (b"", b"hello", whole[: len(whole) // 2]):
        (folder / "class1" / "07.PNG").write_bytes(bad)
        with pytest.raises(SourceError, match=r"class1/07\.PNG cannot be read"):
            list(source.blocks(0, 8))


def test_a_changed_or_added_image_changes_the_fingerprint(folder):
    before = ImageFolder(folder).fingerprint()
    assert ImageFolder(folder).fingerprint() == before
    assert ImageFolder(folder, grey=True).fingerprint() != before
    os.utime(folder / "class0" / "00.png", ns=(1, 1))
    changed = ImageFolder(folder).fingerprint()
    assert changed != before
    shutil.copy(folder / "class0" / "00.png", folder / "zz.png")
    assert ImageFolder(folder).fingerprint() != changed


def test_invalid_sizes_and_folders_without_images_are_refused(tmp_path):
    with pytest.raises(SourceError, match="height and width"):
        ImageFolder(tmp_path, size=(0, 3))
    with pytest.raises(SourceError, match="no images"):
        ImageFolder(tmp_path)


def test_missing_pillow_is_reported_when_the_folder_is_opened(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SourceError, match=r'pillow is needed .* pip install "eigengame\[images\]"'):
        as_source(folder)


def test_other_folders_are_refused_with_their_content(tmp_path):
    with pytest.raises(SourceError, match="contains no files"):
        as_source(tmp_path)
    for name in ("a.doc", "b.doc", "c", "d.xml"):
        (tmp_path / name).write_text("hello")
    with pytest.raises(SourceError, match=r"contains 2 \.doc, 1 .*1 .*: give a folder of"):
        as_source(tmp_path)
    with pytest.raises(SourceError, match="not a folder"):
        open_folder(tmp_path / "a.doc")
    (tmp_path / "a.png").write_text("hello")
    (tmp_path / "a.parquet").write_text("hello")
    with pytest.raises(SourceError, match="images and Parquet files"):
        as_source(tmp_path)


@pytest.mark.parametrize(
    ("ending", "target"),
    [
        (".parquet", "columnar:open_parquet"),
        (".arrow", "columnar:open_arrow"),
        (".feather", "columnar:open_arrow"),
        (".png", "image_folder:ImageFolder"),
    ],
)
def test_a_folder_is_opened_according_to_its_files(tmp_path, monkeypatch, ending, target):
    (tmp_path / "year=2024").mkdir()
    (tmp_path / "year=2024" / f"part{ending}").write_text("hello")
    (tmp_path / "_SUCCESS").write_text("")
    monkeypatch.setattr("eigengame.sources._open", lambda *call: call)
    assert open_folder(tmp_path, size=3) == (target, str(tmp_path), {"size": 3})


def test_real_photographs(tmp_path):
    with os.scandir(real("imagenet_sample_1000")) as entries:
        for entry in itertools.islice(entries, 5):
            shutil.copy(entry.path, tmp_path)
    source = as_source(tmp_path, size=(32, 48))
    (block,) = source.blocks(0, 8)
    assert block.values.shape == (5, 32 * 48 * 3)
    assert block.values.dtype == np.uint8
    for path, row in zip(source.paths, block.values, strict=True):
        with Image.open(path) as picture:
            whole = np.asarray(picture.convert("RGB").resize((48, 32), Image.Resampling.BICUBIC))
        # Decoding at a smaller scale changes an image slightly.
        assert np.abs(row.reshape(32, 48, 3).astype(float) - whole).mean() < 3
