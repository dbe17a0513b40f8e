"""Crops of photographs, with places and flips given by a seed: every pass reads the same rows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from eigengame.sources import SourceError
from reproduction.mnist_images import BESIDE

PHOTOGRAPHS = "imagenet_sample_1000"
WEIGHTS = "resnet50_imagenet/resnet50_keras_imagenet_fp16conv.npz"
"""Paths within the folder of data."""

MEANS = np.array([103.939, 116.779, 123.68], np.float32)
"""Means of blue, green and red, the order of channels that the network expects."""

UNIT = 57.6
"""Divisor of pixels, about the standard deviation of photographs. See `network.load`."""

MARGIN = 256 / 224
"""Short side of a resized photograph, in sides of a crop."""

FIX = (
    f"give --data FOLDER, or set EIGENGAME_DATA, to a folder that holds {PHOTOGRAPHS}/ with a file "
    f"wnid_label.jpg for each class, and {WEIGHTS}"
)


def folder_of(where: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder with photographs and weights: as given, else `EIGENGAME_DATA`, else `BESIDE`."""
    folder = Path(where or os.environ.get("EIGENGAME_DATA") or BESIDE)
    for part in (PHOTOGRAPHS, WEIGHTS):
        if not (folder / part).exists():
            raise SourceError(f"{folder} has no {part}: {FIX}.")
    return folder


class Photographs:
    """A torch dataset of crops: items are (pixels, label), pixels float32 of shape (3, size, size).

    Photographs are decoded once and kept in memory. Copy 0 of each is its centre; other copies are crops at
    random places, flipped with probability one half. A crop depends only on the seed, the photograph and the
    copy, so that every pass reads the same rows: a certificate is about one matrix.

    Parameters
    ----------
    folder : path
        Folder of files wnid_label.jpg, one for each class.
    size : int
        Height and width of a crop. Photographs are resized to a short side of 8/7 of it.
    count : int, optional
        Number of photographs, evenly spaced among all of them; all by default.
    copies : int
        Number of crops of each.
    seed : int
        Seed of places, flips, and the order of rows.

    Attributes
    ----------
    names : list of str
        Label of each photograph.
    labels : array of shape (count,)
        Its class: the index of its wnid among all files of the folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        size: int = 224,
        count: int | None = None,
        copies: int = 1,
        seed: int = 0,
    ) -> None:
        paths = sorted(Path(folder).glob("n*_*.jpg"))
        if not paths:
            raise SourceError(f"{folder} has no file named wnid_label.jpg: {FIX}.")
        chosen = np.arange(len(paths))
        if count is not None and count < len(paths):
            chosen = np.arange(count) * len(paths) // count
        self.labels, self.size, self.copies, self.seed = chosen, size, copies, seed
        self.names = [paths[one].stem.split("_", 1)[1].replace("_", " ") for one in chosen]
        with ThreadPoolExecutor() as pool:
            self._pixels = list(pool.map(self._decoded, [paths[one] for one in chosen]))
        # Files are sorted by class; shuffled, each batch has many classes.
        self._order = np.random.default_rng(seed).permutation(len(chosen) * copies)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, row: int) -> tuple[np.ndarray, int]:
        copy, photograph = divmod(int(self._order[row]), len(self.labels))
        return self.crop(photograph, copy), int(self.labels[photograph])

    def crop(self, photograph: int, copy: int = 0) -> np.ndarray:
        """Return one crop as input of the network: blue, green and red minus their means, over `UNIT`."""
        pixels = self._pixels[photograph]
        room = np.array(pixels.shape[1:]) - self.size
        top, left = room // 2
        flip = False
        if copy:
            rng = np.random.default_rng([self.seed, photograph, copy])
            top, left = rng.integers(room + 1)
            flip = bool(rng.integers(2))
        cut = pixels[:, top : top + self.size, left : left + self.size].astype(np.float32)
        cut = np.ascontiguousarray(cut[..., ::-1] if flip else cut)
        return (cut - MEANS[:, None, None]) / np.float32(UNIT)

    def _decoded(self, path: Path) -> np.ndarray:
        """Read and resize a photograph: blue, green, red, uint8 of shape (3, height, width)."""
        from PIL import Image

        short = round(self.size * MARGIN)
        try:
            with Image.open(path) as file:
                picture = file.convert("RGB")
        except OSError as error:
            raise SourceError(f"{path} is not an image ({error}): repair or remove it.") from None
        if min(picture.size) != short:
            scale = short / min(picture.size)
            sides = [max(short, round(side * scale)) for side in picture.size]
            picture = picture.resize((sides[0], sides[1]), Image.Resampling.BOX)
        return np.ascontiguousarray(np.moveaxis(np.asarray(picture)[..., ::-1], -1, 0))
