"""Folders of images as rows: each image is flattened to a row of uint8."""

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
from eigengame.sources._memory import MAX_ITEM, Budget, limit_of, size_text

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""Decoders that are used, whatever the names of the files. Some of Pillow's others start programs."""

GREY = ("1", "L", "LA", "La")
"""Pillow's modes with one colour channel."""

DEEP = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
"""Pillow's modes with more than 8 bits per channel, which do not fit in uint8."""

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


class ImageFolder(RandomAccess):
    """Images of a folder and its subfolders, sorted by path.

    Images are decoded on one thread per core. A JPEG is decoded at the smallest scale that is at least twice
    `size`, which is several times faster.

    Parameters
    ----------
    path : path
        On local disk.
    size : tuple of int, optional
        Height and width to which all images are resized. Defaults to their common size.
    grey : bool, optional
        Whether to read one channel instead of three. By default True if all images are grey.
    name : str, optional
        Defaults to the path.
    max_bytes : int, optional
        Largest size of a decoded image. Images that are decoded at the same time share twice as much. Defaults to
        256 MiB, about 89 million pixels. Pillow has a limit of its own, `PIL.Image.MAX_IMAGE_PIXELS`.

    Attributes
    ----------
    paths : list of str
        Files, one for each row.
    image_shape : tuple of int
        Height, width and channels of each row.
    """

    dtype = np.dtype(np.uint8)
    image_shape: tuple[int, int, int]

    def __init__(
        self,
        path: str | os.PathLike[str],
        size: tuple[int, int] | None = None,
        grey: bool | None = None,
        name: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        importlib.import_module("PIL")  # raise now if it is missing, not when the first row is read
        self._folder = os.fspath(path)
        self.name = name or self._folder
        if size is not None and (len(size) != 2 or min(size) < 1):
            raise SourceError(
                f"{self.name}: size={size!r}: give height and width, at least 1 each."
            )
        self._decoder = ImageDecoder(max_bytes)
        self.paths = image_paths(self._folder)
        if not self.paths:
            raise SourceError(
                f"{self.name} has no images: none of its files ends in {', '.join(ENDINGS)}."
            )
        if size is None or grey is None:
            with ThreadPoolExecutor() as pool:
                headers = list(pool.map(self._decoder.header, self.paths))
            size = _common_size(self.name, headers) if size is None else size
            grey = all(one.grey for one in headers) if grey is None else grey
        self.image_shape = (int(size[0]), int(size[1]), 1 if grey else 3)
        self.shape = (len(self.paths), int(np.prod(self.image_shape)))

    def read(self, begin: int, end: int) -> np.ndarray:
        """Decode images `begin` to `end`."""
        with ThreadPoolExecutor() as pool:
            return np.stack(list(pool.map(self._decode, self.paths[begin:end])))

    def _decode(self, path: str) -> np.ndarray:
        """Return one image as a row."""
        from PIL import Image

        height, width, channels = self.image_shape
        mode = "L" if channels == 1 else "RGB"
        with self._decoder.open(path, mode, (2 * width, 2 * height)) as image:
            _refuse_deep(image.mode)
            resized = image.convert(mode).resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(resized, np.uint8).ravel()

    def row_ids(self) -> list[str]:
        """Return the path of each image within the folder."""
        return [os.path.relpath(path, self._folder) for path in self.paths]

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype and a digest of the names, sizes and times of all files."""
        digest = hashlib.sha256()
        for path in self.paths:
            status = os.stat(path)
            line = f"{os.path.relpath(path, self._folder)} {status.st_size} {status.st_mtime_ns}\n"
            digest.update(line.encode())
        about = {"image_shape": list(self.image_shape), "files": digest.hexdigest()[:16]}
        return super().fingerprint() | about

    def digest(self) -> str | None:
        """Return a digest of all files."""
        return digest_of_files(self.paths)


class Header(NamedTuple):
    """Size and kind of an image."""

    height: int
    width: int
    grey: bool


class ImageDecoder:
    """Images that are opened with a limit on the memory of each and of all together.

    Parameters
    ----------
    max_bytes : int, optional
        Largest size of a decoded image.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        self._limit = limit_of(max_bytes, MAX_ITEM)
        self._budget = Budget(2 * self._limit)

    def header(self, path: str) -> Header:
        """Return the size and kind of an image without decoding it."""
        from PIL import Image

        with name_file_in_errors(path), Image.open(path, formats=FORMATS) as image:
            _refuse_deep(image.mode)
            return Header(image.height, image.width, image.mode in GREY)

    @contextlib.contextmanager
    def open(self, path: str, mode: str, draft: tuple[int, int]) -> Iterator[Any]:
        """Open an image whose decoded size is within the limit.

        Parameters
        ----------
        path : str
        mode : str
            Pillow's mode to which the image is converted.
        draft : tuple of int
            Width and height. A JPEG is decoded at the smallest scale that is at least this large.
        """
        from PIL import Image

        with name_file_in_errors(path), Image.open(path, formats=FORMATS) as image:
            image.draft(mode, draft)
            needed = image.width * image.height * max(len(mode), len(image.getbands()))
            if needed > self._limit:
                raise SourceError(
                    f"{path} has {image.height} x {image.width} pixels, which need {size_text(needed)}, more than "
                    f"the limit of {size_text(self._limit)}: resize or remove it, or give max_bytes= to as_source "
                    "(--max-bytes)."
                )
            with self._budget.hold(2 * needed):  # as decoded, and converted
                yield image


def _refuse_deep(mode: str) -> None:
    """Raise if an image has more than 8 bits per channel, which would be lost."""
    if mode in DEEP:
        raise ValueError(
            f"mode {mode} has more than 8 bits per channel, which is not supported; convert it to 8 bits"
        )


def _common_size(name: str, headers: Sequence[Header]) -> tuple[int, int]:
    """Return the height and width of all images; raise if they differ."""
    sizes = Counter((one.height, one.width) for one in headers)
    if len(sizes) == 1:
        return next(iter(sizes))
    few = ", ".join(
        f"{height} x {width} ({count})" for (height, width), count in sizes.most_common(4)
    )
    more = f" and {len(sizes) - 4} more" if len(sizes) > 4 else ""
    raise SourceError(
        f"{name} has images of {len(sizes)} sizes, height x width: {few}{more}. Give the size to resize them "
        "to, for example size=(64, 64) (--image-size 64x64)."
    )


@contextlib.contextmanager
def name_file_in_errors(path: str) -> Iterator[None]:
    """Turn an error while decoding an image into a `SourceError` that names the file."""
    try:
        yield
    except (MemoryError, SourceError):
        raise
    except Exception as error:  # decoders raise errors of any type
        raise SourceError(
            f"{path} cannot be read as an image ({error}): repair or remove it."
        ) from None


def image_paths(folder: str) -> list[str]:
    """Return the paths of all images in a folder and its subfolders, sorted."""
    return sorted(file for file in walk_files(folder) if file.lower().endswith(ENDINGS))


def walk_files(folder: str) -> Iterator[str]:
    """Yield the paths of all files in a folder and its subfolders, except hidden ones."""
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(where, name) for name in names if not name.startswith("."))
