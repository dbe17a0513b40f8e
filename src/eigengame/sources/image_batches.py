"""ImageBatches as networks take them: batches (m, channels, height, width), scaled and normalised."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._digest import combined, digest_of_files, digest_of_texts, digest_of_tree
from eigengame.sources.image_folder import ENDINGS, FORMATS, decoding, files_of

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's red, green and blue from 0 to 1: what most networks for pictures were trained with."""

BORDER = 256 / 224
"""The short side before the crop, in sizes of the crop: as ImageNet's networks are measured."""


def image_batches(
    data: str | os.PathLike[str],
    batch: int,
    size: int = 224,
    mean: Sequence[float] = MEAN,
    std: Sequence[float] = STD,
) -> ImageBatches | RowBatches:
    """Return the batches of a folder of pictures, or of any data whose rows are pictures or plain numbers.

    Parameters
    ----------
    data : path
        A folder of pictures, or anything that `as_source` opens.
    batch : int
        Rows of each batch.
    size : int
        Height and width that pictures of a folder are brought to: the short side resized to a little more,
        then the middle.
    mean, std : sequence of float
        For each channel, of values from 0 to 1: subtracted, then divided by. Plain rows stay as they are.
    """
    folder = os.fspath(data)
    if os.path.isdir(folder):
        paths = sorted(file for file in files_of(folder) if file.lower().endswith(ENDINGS))
        if paths:
            return ImageBatches(paths, batch, size, mean, std)
    from eigengame.sources import as_source

    return RowBatches(as_source(data), batch, mean, std)


class ImageBatches:
    """Files of pictures in batches: decoded on threads, one batch ahead.

    Parameters
    ----------
    paths : sequence of path
    batch, size, mean, std
        As for `image_batches`.

    Attributes
    ----------
    rows : int
    """

    def __init__(
        self,
        paths: Sequence[str],
        batch: int,
        size: int = 224,
        mean: Sequence[float] = MEAN,
        std: Sequence[float] = STD,
    ) -> None:
        self.paths, self.rows, self._batch, self._size = list(paths), len(paths), batch, size
        self._mean, self._std = _per_channel(mean, std, 3)

    def __iter__(self) -> Iterator[np.ndarray]:
        parts = [self.paths[i : i + self._batch] for i in range(0, self.rows, self._batch)]
        with ThreadPoolExecutor() as pool:
            waiting = [pool.submit(self._pixels, path) for path in parts[0]]
            for part in [*parts[1:], []]:
                coming = [pool.submit(self._pixels, path) for path in part]
                yield np.stack([one.result() for one in waiting])
                waiting = coming

    def digest(self) -> str | None:
        """Return a digest of all files and of what is made of them."""
        made = digest_of_tree([self._batch, self._size, self._mean, self._std])
        return digest_of_texts([made, digest_of_files(self.paths)])

    def _pixels(self, path: str) -> np.ndarray:
        """Return one picture, shape (3, size, size)."""
        from PIL import Image

        short = max(self._size, round(BORDER * self._size))
        with decoding(path), Image.open(path, formats=FORMATS) as opened:
            opened.draft("RGB", (2 * short, 2 * short))
            picture = opened.convert("RGB")
            width, height = (
                max(short, round(short * one / min(picture.size))) for one in picture.size
            )
            left, top = (width - self._size) // 2, (height - self._size) // 2
            resized = picture.resize((width, height), Image.Resampling.BILINEAR)
            cut = resized.crop((left, top, left + self._size, top + self._size))
        return _normalised(np.asarray(cut, np.uint8).transpose(2, 0, 1), self._mean, self._std)


class RowBatches:
    """Rows of a source in batches, as pictures where they are some.

    Parameters
    ----------
    source : Source
    batch, mean, std
        As for `image_batches`.

    Attributes
    ----------
    rows : int or None
    """

    def __init__(
        self, source: Source, batch: int, mean: Sequence[float] = MEAN, std: Sequence[float] = STD
    ) -> None:
        if source.sparse:
            raise SourceError(f"{source.name} is sparse: a network needs dense rows.")
        self._source, self._batch, self.rows = source, batch, source.shape[0]
        self._shape = source.image_shape
        if self._shape is not None:
            self._mean, self._std = _per_channel(mean, std, self._shape[2])

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self._source.blocks(0, self._batch):
            values = np.asarray(block.values)
            if self._shape is None:
                yield values.astype(np.float32)
            else:
                pictures = values.reshape(-1, *self._shape).transpose(0, 3, 1, 2)
                yield _normalised(pictures, self._mean, self._std)

    def digest(self) -> str | None:
        """Return a digest of the source and of what is made of its rows."""
        changed = None if self._shape is None else [self._mean, self._std]
        made = digest_of_tree([self._batch, self._source.fingerprint(), changed])
        return combined([made, self._source.digest()])


def _per_channel(mean: Any, std: Any, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of each channel, shape (channels, 1, 1)."""
    given = [np.asarray(one, np.float32).reshape(-1, 1, 1) for one in (mean, std)]
    for name, one in zip(("mean", "std"), given, strict=True):
        if len(one) != channels:
            raise SourceError(
                f"{name} has {len(one)} numbers, but pictures have {channels} channels: give one for each."
            )
    if not (given[1] > 0).all():
        raise SourceError(f"std={list(given[1].ravel())}: give numbers above 0.")
    return given[0], given[1]


def _normalised(pictures: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return pictures (..., channels, height, width) in float32; whole numbers count as 0 to 255."""
    scale = 255 if pictures.dtype.kind in "ui" else 1
    # From contiguous memory, whatever the order of axes before.
    return (np.ascontiguousarray(pictures, np.float32) / scale - mean) / std
