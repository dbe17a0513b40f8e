"""The 60000 training images of MNIST, from a file or from OpenML."""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from eigengame.sources import SourceError
from eigengame.sources.idx import open_idx

IMAGES, FEATURES = 60_000, 784

NAMES = ("train-images-idx3-ubyte.gz", "train-images-idx3-ubyte", "train-images.idx3-ubyte")
"""Names of the file, in the order of the search."""

MD5 = "6510e85a72c3e9475c492d559d3770d2"
"""Checksum of the 60000 x 784 bytes of pixels, however they are stored."""

FIX = "give --data PATH, the file train-images-idx3-ubyte.gz or its folder, or set EIGENGAME_DATA"

BESIDE = Path(__file__).parents[2] / "shared" / "data"
"""Folder of data beside the repository, used if it exists."""


def load(where: str | os.PathLike[str] | None = None) -> np.ndarray:
    """Return the images as rows, float32 of shape (60000, 784), from 0 to 1.

    Parameters
    ----------
    where : path, optional
        The file `train-images-idx3-ubyte`, gzipped or not, its folder, or a folder with it in `mnist`. By default
        the folder in the environment variable `EIGENGAME_DATA`, else `BESIDE`, else a download from OpenML, which
        scikit-learn caches.
    """
    path = find_file(where)
    pixels = _from_openml() if path is None else _from_file(path)
    name = "OpenML's mnist_784" if path is None else str(path)
    seen = hashlib.md5(pixels.data, usedforsecurity=False).hexdigest()
    if seen != MD5:
        raise SourceError(
            f"{name} is not the training set of MNIST: {pixels.shape[0]} x {pixels.shape[1]} pixels with md5 "
            f"{seen}, expected {IMAGES} x {FEATURES} with {MD5}: {FIX}."
        )
    return pixels.astype(np.float32) / np.float32(255)


def readings(images: np.ndarray) -> dict[str, np.ndarray]:
    """Return the images in both readings of the paper: centred, and as they are.

    The paper does not say whether the mean image is subtracted. It is the mean over all rows given.
    """
    mean = images.mean(axis=0, keepdims=True, dtype=np.float64)
    return {"centred": (images - mean).astype(np.float32), "uncentred": images}


def find_file(where: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file that `load` reads, or None if it downloads from OpenML."""
    if where is not None:
        return _within(Path(where), "data")
    folder = os.environ.get("EIGENGAME_DATA")
    if folder:
        return _within(Path(folder) / "mnist", "EIGENGAME_DATA")
    beside = BESIDE / "mnist"
    return _within(beside, "data") if beside.is_dir() else None


def _within(path: Path, argument: str) -> Path:
    """Return the file at a path, in that folder, or in its subfolder `mnist`."""
    if path.is_file():
        return path
    candidates = (folder / name for folder in (path, path / "mnist") for name in NAMES)
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        problem = f"has no {NAMES[0]}, gzipped or not" if path.is_dir() else "does not exist"
        raise SourceError(f"{argument}: {path} {problem}: {FIX}.")
    return file


def _from_file(path: Path) -> np.ndarray:
    """Read the pixels of an idx file, uint8."""
    source = open_idx(path)
    blocks = [np.asarray(block.values) for block in source.blocks(0, 10_000)]
    return np.ascontiguousarray(np.concatenate(blocks))


def _from_openml() -> np.ndarray:
    """Download the first 60000 images of OpenML's copy, which are the training set, uint8."""
    from sklearn.datasets import fetch_openml

    # The faster parser needs pandas, which is optional.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        fetched = fetch_openml("mnist_784", version=1, as_frame=False, parser=parser)
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot download mnist_784 from OpenML ({error}): {FIX}.") from None
    return np.ascontiguousarray(fetched.data[:IMAGES].astype(np.uint8))
