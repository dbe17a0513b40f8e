"""Images as network inputs: resized, cropped from the centre, normalised, in batches."""

import numpy as np
import pytest

PIL = pytest.importorskip("PIL", reason="pillow is not installed")

from PIL import Image  # noqa: E402

from eigengame.sources.image_batches import MEAN, STD, image_batches  # noqa: E402
from tests.sources.tables import error_of  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """Five images of several shapes: the left half black, the right half a shade of red."""
    for i, (height, width) in enumerate([(40, 64), (64, 40), (32, 32), (50, 50), (90, 33)]):
        pixels = np.zeros((height, width, 3), np.uint8)
        pixels[:, width // 2 :, 0] = 50 * i
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
    return tmp_path


def test_images_are_cropped_from_the_middle_and_normalised(folder):
    batches = image_batches(folder, 2, size=28)
    found = list(batches)
    assert batches.rows == 5
    assert [one.shape for one in found] == [(2, 3, 28, 28), (2, 3, 28, 28), (1, 3, 28, 28)]
    assert all(one.dtype == np.float32 for one in found)
    back = np.concatenate(found) * np.reshape(STD, (3, 1, 1)) + np.reshape(MEAN, (3, 1, 1))
    for i, picture in enumerate(back):
        np.testing.assert_allclose(picture[1:], 0, atol=1e-5)
        # The halves meet in the middle, where bilinear interpolation mixes pixels.
        np.testing.assert_allclose(picture[0, :, :12], 0, atol=1e-5)
        np.testing.assert_allclose(picture[0, :, 16:], 50 * i / 255, atol=1e-5)
    np.testing.assert_array_equal(np.concatenate(list(batches)), np.concatenate(found))


def test_rows_that_are_images_are_reshaped(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (5, 4, 6, 3), dtype=np.uint8)
    np.save(tmp_path / "x.npy", pixels)
    found = list(image_batches(tmp_path / "x.npy", 3, mean=(0, 0, 0), std=(1, 1, 1)))
    assert [len(one) for one in found] == [3, 2]
    np.testing.assert_allclose(np.concatenate(found), pixels.transpose(0, 3, 1, 2) / 255, atol=1e-6)


def test_plain_rows_are_not_normalised(tmp_path):
    rows = np.random.default_rng(0).normal(size=(5, 7))
    np.save(tmp_path / "x.npy", rows)
    batches = image_batches(tmp_path / "x.npy", 3)
    assert batches.rows == 5
    np.testing.assert_array_equal(np.concatenate(list(batches)), rows.astype(np.float32))


def test_data_that_cannot_be_images_is_refused(folder):
    assert "mean has 1 numbers, but images have 3" in error_of(
        image_batches, folder, 2, mean=(0.5,)
    )
    assert "give numbers above 0" in error_of(image_batches, folder, 2, std=(1, 0, 1))
    (folder / "9.png").write_bytes(b"no picture")
    assert "9.png cannot be read as an image" in error_of(
        lambda: list(image_batches(folder, 2, size=8))
    )
