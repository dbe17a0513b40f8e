"""MNIST's 60000 images for training: from a file on this machine, or from OpenML."""

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
"""What the file of images for training is called, in the order in which they are looked for."""

MD5 = "6510e85a72c3e9475c492d559d3770d2"
"""Of the 60000 x 784 bytes of pixels: the same for a gzipped file, a plain one, and OpenML's copy."""

FIX = "give --data PATH, the file train-images-idx3-ubyte.gz or its folder, or set EIGENGAME_DATA"

CHECKOUT = Path(__file__).parents[3]
"""The root of the project, where it is run from a checkout."""


def load(where: str | os.PathLike[str] | None = None) -> np.ndarray:
    """Return the images, one in each row: float32, shape (60000, 784), from 0 to 1.

    Parameters
    ----------
    where : path, optional
        The file `train-images-idx3-ubyte`, gzipped or not, or its folder, or one that has it in `mnist`. By
        default the folder that the variable `EIGENGAME_DATA` names, else `shared/data` beside a checkout,
        else OpenML, which keeps its copy in scikit-learn's folder of data.
    """
    path = found(where)
    pixels = _from_openml() if path is None else _from_file(path)
    name = "OpenML's mnist_784" if path is None else str(path)
    seen = hashlib.md5(pixels.data, usedforsecurity=False).hexdigest()
    if seen != MD5:
        raise SourceError(
            f"{name} is not MNIST's training set: {pixels.shape[0]} x {pixels.shape[1]} pixels with md5 "
            f"{seen}, where {IMAGES} x {FEATURES} with {MD5} are expected: {FIX}."
        )
    return pixels.astype(np.float32) / np.float32(255)


def found(where: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file that `load` would read, or None where it would ask OpenML."""
    if where is not None:
        return _within(Path(where), "data")
    folder = os.environ.get("EIGENGAME_DATA")
    if folder:
        return _within(Path(folder) / "mnist", "EIGENGAME_DATA")
    beside = CHECKOUT.parent / "shared" / "data" / "mnist"
    in_checkout = (CHECKOUT / "pyproject.toml").is_file()
    return _within(beside, "shared data") if in_checkout and beside.is_dir() else None


def _within(path: Path, asked_by: str) -> Path:
    """Return the file at a path, or the one in that folder or in its folder `mnist`."""
    if path.is_file():
        return path
    candidates = (folder / name for folder in (path, path / "mnist") for name in NAMES)
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        seen = f"has no {NAMES[0]}, gzipped or not" if path.is_dir() else "does not exist"
        raise SourceError(f"{asked_by}: {path} {seen}: {FIX}.")
    return file


def _from_file(path: Path) -> np.ndarray:
    """Return the pixels of an idx file, uint8."""
    source = open_idx(path)
    blocks = [np.asarray(block.values) for block in source.blocks(0, 10_000)]
    return np.ascontiguousarray(np.concatenate(blocks))


def _from_openml() -> np.ndarray:
    """Return the first 60000 images that OpenML has: those for training, uint8."""
    from sklearn.datasets import fetch_openml

    # The fast parser needs pandas, which is not ours to ask for.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        fetched = fetch_openml("mnist_784", version=1, as_frame=False, parser=parser)
    except (OSError, ValueError) as error:
        raise SourceError(f"OpenML did not answer with mnist_784 ({error}): {FIX}.") from None
    return np.ascontiguousarray(fetched.data[:IMAGES].astype(np.uint8))
