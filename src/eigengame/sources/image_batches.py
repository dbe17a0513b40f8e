"""Images as network inputs: batches of shape (m, channels, height, width), scaled and normalised."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from eigengame.sources._base import Source, SourceError
from eigengame.sources._digest import (
    combine_digests,
    digest_of_files,
    digest_of_texts,
    digest_of_tree,
)
from eigengame.sources.image_folder import ImageDecoder, image_paths

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and standard deviation of ImageNet's channels, scaled to [0, 1]: the usual normalisation."""

RESIZE_RATIO = 256 / 224
"""Length of the short side before the centre crop, relative to the crop: the ImageNet convention."""


def image_batches(
    data: str | os.PathLike[str],
    batch: int,
    size: int = 224,
    mean: Sequence[float] = MEAN,
    std: Sequence[float] = STD,
) -> ImageBatches | RowBatches:
    """Return batches of network inputs from a folder of images, or from any data with rows.

    Parameters
    ----------
    data : path
        A folder of images, or a path that `as_source` opens.
    batch : int
        Rows per batch.
    size : int
        Height and width of the images of a folder. Their short side is resized to a slightly larger value,
        then the centre is cropped.
    mean, std : sequence of float
        Mean and standard deviation of each channel, for values from 0 to 1. Rows that are not images are
        not normalised.
    """
    folder = os.fspath(data)
    if os.path.isdir(folder):
        paths = image_paths(folder)
        if paths:
            return ImageBatches(paths, batch, size, mean, std)
    from eigengame.sources import as_source

    return RowBatches(as_source(data), batch, mean, std)


class ImageBatches:
    """Batches of image files, decoded on threads one batch ahead. Parameters as in `image_batches`."""

    def __init__(
        self,
        paths: Sequence[str],
        batch: int,
        size: int,
        mean: Sequence[float],
        std: Sequence[float],
    ) -> None:
        self.paths, self.rows, self._batch, self._size = list(paths), len(paths), batch, size
        self._mean, self._std = _per_channel(mean, std, 3)
        self._decoder = ImageDecoder()

    def __iter__(self) -> Iterator[np.ndarray]:
        parts = [self.paths[i : i + self._batch] for i in range(0, self.rows, self._batch)]
        with ThreadPoolExecutor() as pool:
            current = [pool.submit(self._decode, path) for path in parts[0]]
            for part in [*parts[1:], []]:
                following = [pool.submit(self._decode, path) for path in part]
                yield np.stack([one.result() for one in current])
                current = following

    def digest(self) -> str | None:
        """Return a digest of all files and of the parameters."""
        parameters = digest_of_tree([self._batch, self._size, self._mean, self._std])
        return digest_of_texts([parameters, digest_of_files(self.paths)])

    def _decode(self, path: str) -> np.ndarray:
        """Return one image, shape (3, size, size)."""
        from PIL import Image

        short = max(self._size, round(RESIZE_RATIO * self._size))
        with self._decoder.open(path, "RGB", (2 * short, 2 * short)) as file:
            image = file.convert("RGB")
            width, height = (max(short, round(short * one / min(image.size))) for one in image.size)
            left, top = (width - self._size) // 2, (height - self._size) // 2
            resized = image.resize((width, height), Image.Resampling.BILINEAR)
            crop = resized.crop((left, top, left + self._size, top + self._size))
        return _normalise(np.asarray(crop, np.uint8).transpose(2, 0, 1), self._mean, self._std)


class RowBatches:
    """Batches of a source's rows, reshaped if they are images. Parameters as in `image_batches`."""

    def __init__(
        self, source: Source, batch: int, mean: Sequence[float], std: Sequence[float]
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
                images = values.reshape(-1, *self._shape).transpose(0, 3, 1, 2)
                yield _normalise(images, self._mean, self._std)

    def digest(self) -> str | None:
        """Return a digest of the source and of the parameters."""
        normalisation = None if self._shape is None else [self._mean, self._std]
        parameters = digest_of_tree([self._batch, self._source.fingerprint(), normalisation])
        return combine_digests([parameters, self._source.digest()])


def _per_channel(mean: Any, std: Any, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation with shape (channels, 1, 1)."""
    given = [np.asarray(one, np.float32).reshape(-1, 1, 1) for one in (mean, std)]
    for name, one in zip(("mean", "std"), given, strict=True):
        if len(one) != channels:
            raise SourceError(
                f"{name} has {len(one)} numbers, but images have {channels} channels: give one for each."
            )
    if not (given[1] > 0).all():
        raise SourceError(f"std={list(given[1].ravel())}: give numbers above 0.")
    return given[0], given[1]


def _normalise(images: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return images (..., channels, height, width) in float32. Integers are scaled from [0, 255]."""
    scale = 255 if images.dtype.kind in "ui" else 1
    # The result is contiguous, whatever the order of the axes.
    return (np.ascontiguousarray(images, np.float32) / scale - mean) / std
