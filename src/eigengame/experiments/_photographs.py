"""Photographs in crops and flips that a seed decides: the same rows in every pass."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from eigengame.sources import SourceError

PHOTOGRAPHS = "imagenet_sample_1000"
WEIGHTS = "resnet50_imagenet/resnet50_keras_imagenet_fp16conv.npz"
"""Where the two are in the folder of data."""

MEANS = np.array([103.939, 116.779, 123.68], np.float32)
"""What the network expects to be taken off blue, green and red, which it takes in this order."""

UNIT = 57.6
"""What pixels are divided by: about the standard deviation of a photograph's. See `_resnet.load`."""

MARGIN = 256 / 224
"""How much longer the short side of a photograph is than that of its crops."""

FIX = (
    f"give --data FOLDER, or set EIGENGAME_DATA, to a folder that holds {PHOTOGRAPHS}/ with a file "
    f"wnid_label.jpg for each class, and {WEIGHTS}"
)

CHECKOUT = Path(__file__).parents[3]
"""The root of the project, where it is run from a checkout."""


def folder_of(where: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder with photographs and weights: as told, `EIGENGAME_DATA`, or `shared/data`."""
    asked = where or os.environ.get("EIGENGAME_DATA")
    folder = Path(asked) if asked else CHECKOUT.parent / "shared" / "data"
    for part in (PHOTOGRAPHS, WEIGHTS):
        if not (folder / part).exists():
            raise SourceError(f"{folder} has no {part}: {FIX}.")
    return folder


class Photographs:
    """A torch dataset of crops: items are (pixels, label), pixels float32 of shape (3, size, size).

    All photographs are decoded once and stay in memory. Copy 0 of each is its centre; every other copy is a
    crop from a random place, in half of the cases flipped. Which one depends on the seed, the photograph and
    the copy alone, so that every pass sees the same rows: a certificate is about one matrix.

    Parameters
    ----------
    folder : path
        Of files wnid_label.jpg, one for each class.
    size : int
        Height and width of a crop; photographs are resized so that their short side is 8/7 of it.
    count : int, optional
        How many photographs, evenly from all of them; by default all.
    copies : int
        How many crops of each.
    seed : int
        Of places, flips, and the order of rows.

    Attributes
    ----------
    names : list of str
        What is on each photograph.
    labels : array of shape (count,)
        Its class: the place of its wnid among all of the folder.
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
            raise SourceError(f"{folder} has no photograph named wnid_label.jpg: {FIX}.")
        chosen = np.arange(len(paths))
        if count is not None and count < len(paths):
            chosen = np.arange(count) * len(paths) // count
        self.labels, self.size, self.copies, self.seed = chosen, size, copies, seed
        self.names = [paths[one].stem.split("_", 1)[1].replace("_", " ") for one in chosen]
        with ThreadPoolExecutor() as pool:
            self._pixels = list(pool.map(self._decoded, [paths[one] for one in chosen]))
        # Files are sorted by class: batches in their order would each be of few classes.
        self._order = np.random.default_rng(seed).permutation(len(chosen) * copies)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, row: int) -> tuple[np.ndarray, int]:
        copy, photograph = divmod(int(self._order[row]), len(self.labels))
        return self.crop(photograph, copy), int(self.labels[photograph])

    def crop(self, photograph: int, copy: int = 0) -> np.ndarray:
        """Return one crop as the network takes it: blue, green and red less their means, by `UNIT`."""
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
        """Return a photograph of the short side that crops are from: blue, green, red, uint8 (3, ...)."""
        from PIL import Image

        short = round(self.size * MARGIN)
        try:
            with Image.open(path) as file:
                picture = file.convert("RGB")
        except OSError as error:
            raise SourceError(f"{path} is no photograph ({error}): repair or remove it.") from None
        if min(picture.size) != short:
            scale = short / min(picture.size)
            sides = [max(short, round(side * scale)) for side in picture.size]
            picture = picture.resize((sides[0], sides[1]), Image.Resampling.BOX)
        return np.ascontiguousarray(np.moveaxis(np.asarray(picture)[..., ::-1], -1, 0))


def centres(photographs: Photographs, chosen: Sequence[int]) -> np.ndarray:
    """Return the centres of some photographs, shape (len(chosen), 3, size, size)."""
    return np.stack([photographs.crop(one) for one in chosen])
