"""Folders of pictures: each one resized, flattened, a row of uint8."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from eigengame.sources._base import Random, SourceError
from eigengame.sources._digest import digest_of_files

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


class ImageFolder(Random):
    """Pictures of a folder and its sub-folders, in the order of their names.

    They are decoded by as many threads as there are cores. A JPEG is decoded at the smallest scale that is
    at least twice `size`, which is several times faster.

    Parameters
    ----------
    path : path
        On local disk.
    size : tuple of int
        Height and width that every picture is resized to.
    grey : bool
        Whether to read one channel instead of three.
    name : str, optional

    Attributes
    ----------
    paths : list of str
        The files, one for each row.
    image_shape : tuple of int
        Height, width, channels: what a row can be reshaped to.
    """

    dtype = np.dtype(np.uint8)
    image_shape: tuple[int, int, int]

    def __init__(
        self,
        path: str | os.PathLike[str],
        size: tuple[int, int] = (64, 64),
        grey: bool = False,
        name: str | None = None,
    ) -> None:
        importlib.import_module("PIL")  # said here where it is missing, not on the first row
        self._folder = os.fspath(path)
        self.name = name or self._folder
        if len(size) != 2 or min(size) < 1:
            raise SourceError(
                f"{self.name}: size={size!r}: give height and width, at least 1 each."
            )
        self.paths = sorted(
            file for file in files_of(self._folder) if file.lower().endswith(ENDINGS)
        )
        if not self.paths:
            raise SourceError(
                f"{self.name} has no pictures: none of its files ends in {', '.join(ENDINGS)}."
            )
        self.image_shape = (int(size[0]), int(size[1]), 1 if grey else 3)
        self.shape = (len(self.paths), int(np.prod(self.image_shape)))

    def read(self, begin: int, end: int) -> np.ndarray:
        """Decode pictures `begin` to `end`."""
        with ThreadPoolExecutor() as pool:
            return np.stack(list(pool.map(self._pixels, self.paths[begin:end])))

    def _pixels(self, path: str) -> np.ndarray:
        """Return one picture as a row."""
        from PIL import Image

        height, width, channels = self.image_shape
        mode = "L" if channels == 1 else "RGB"
        with decoding(path), Image.open(path) as picture:
            picture.draft(mode, (2 * width, 2 * height))
            resized = picture.convert(mode).resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(resized, np.uint8).ravel()

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype and a digest of the names, sizes and times of all files."""
        seen = hashlib.sha256()
        for path in self.paths:
            about = os.stat(path)
            line = f"{os.path.relpath(path, self._folder)} {about.st_size} {about.st_mtime_ns}\n"
            seen.update(line.encode())
        picture = {"image_shape": list(self.image_shape), "files": seen.hexdigest()[:16]}
        return super().fingerprint() | picture

    def digest(self) -> str | None:
        """Return a digest of all files."""
        return digest_of_files(self.paths)


@contextlib.contextmanager
def decoding(path: str) -> Iterator[None]:
    """Say which file it was where a picture cannot be decoded."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # decoders raise what they like
        raise SourceError(
            f"{path} cannot be read as a picture ({error}): repair or remove it."
        ) from None


def files_of(folder: str) -> Iterator[str]:
    """Give the paths of all files of a folder and its sub-folders, but for hidden ones."""
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(where, name) for name in names if not name.startswith("."))
