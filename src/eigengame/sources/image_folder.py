"""Folders of pictures: each one flattened to a row of uint8, in its own size or resized."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_files

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""What files are decoded as, whatever their names say: some other decoders start programs."""

GREY = ("1", "L", "LA", "La")
"""Modes of Pillow with one channel, transparency apart."""

DEEP = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
"""Modes of Pillow with more than 8 bits, which do not fit in uint8."""

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


class ImageFolder(RandomAccess):
    """ImageBatches of a folder and its sub-folders, in the order of their names.

    They are decoded by as many threads as there are cores. A JPEG is decoded at the smallest scale that is
    at least twice `size`, which is several times faster.

    Parameters
    ----------
    path : path
        On local disk.
    size : tuple of int, optional
        Height and width that every picture is resized to. By default the size that all of them have.
    grey : bool, optional
        Whether to read one channel instead of three. By default one if all pictures are grey, else three.
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
        size: tuple[int, int] | None = None,
        grey: bool | None = None,
        name: str | None = None,
    ) -> None:
        importlib.import_module("PIL")  # said here where it is missing, not on the first row
        self._folder = os.fspath(path)
        self.name = name or self._folder
        if size is not None and (len(size) != 2 or min(size) < 1):
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
        if size is None or grey is None:
            seen = self._looked_at()
            size = _common_size(self.name, seen) if size is None else size
            grey = all(one.grey for one in seen) if grey is None else grey
        self.image_shape = (int(size[0]), int(size[1]), 1 if grey else 3)
        self.shape = (len(self.paths), int(np.prod(self.image_shape)))

    def read(self, begin: int, end: int) -> np.ndarray:
        """Decode pictures `begin` to `end`."""
        with ThreadPoolExecutor() as pool:
            return np.stack(list(pool.map(self._pixels, self.paths[begin:end])))

    def _looked_at(self) -> list[Header]:
        """Return what each file says of its picture; no pixel is decoded."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(_header, self.paths))

    def _pixels(self, path: str) -> np.ndarray:
        """Return one picture as a row."""
        from PIL import Image

        height, width, channels = self.image_shape
        mode = "L" if channels == 1 else "RGB"
        with decoding(path), Image.open(path, formats=FORMATS) as picture:
            _refuse_deep(picture.mode)
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


class Header(NamedTuple):
    """What a file says of its picture."""

    path: str
    height: int
    width: int
    grey: bool


def _header(path: str) -> Header:
    """Return what a file says of its picture."""
    from PIL import Image

    with decoding(path), Image.open(path, formats=FORMATS) as picture:
        _refuse_deep(picture.mode)
        return Header(path, picture.height, picture.width, picture.mode in GREY)


def _refuse_deep(mode: str) -> None:
    """Raise if a picture has more than 8 bits for each pixel: they would be cut off."""
    if mode in DEEP:
        raise ValueError(
            f"its mode {mode} has more than 8 bits for each channel, which are not read; convert it to 8 bits"
        )


def _common_size(name: str, seen: Sequence[Header]) -> tuple[int, int]:
    """Return the height and width that all pictures have, or raise if they differ."""
    sizes = Counter((one.height, one.width) for one in seen)
    if len(sizes) == 1:
        return next(iter(sizes))
    few = ", ".join(
        f"{height} x {width} ({count})" for (height, width), count in sizes.most_common(4)
    )
    more = f" and {len(sizes) - 4} more" if len(sizes) > 4 else ""
    raise SourceError(
        f"{name} has pictures of {len(sizes)} sizes, height x width: {few}{more}. Give the size to resize all of "
        "them to, such as size=(64, 64) (--image-size 64x64)."
    )


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
