"""The arguments of a report, checked before anything is read."""

from __future__ import annotations

import math
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from eigengame.estimator.pca import EigenGamePCA

CHANNELS = {1: ["loading"], 3: ["red", "green", "blue"], 4: ["red", "green", "blue", "alpha"]}
"""What the planes of an image are called, by how many there are."""


class ReportError(ValueError):
    """An argument that no report can be made of: says what was seen and what to give."""


def check_model(model: Any) -> None:
    """Refuse what is not a fitted estimator of ours."""
    if not isinstance(model, EigenGamePCA):
        raise ReportError(
            f"model is a {type(model).__name__}: give a fitted EigenGamePCA, or EigenGamePCA.load(path)."
        )
    check_is_fitted(model)


def checked_path(path: Any) -> Path:
    """Return where to write, which must be an HTML file in a folder that exists."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ReportError(f"{target}: give a name that ends in .html.")
    if not target.parent.is_dir():
        raise ReportError(f"{target.parent} is not a folder: make it first.")
    return target


def checked_most(most: Any) -> int:
    """Return how many rows to draw at most."""
    if isinstance(most, bool) or not isinstance(most, Integral) or most < 1:
        raise ReportError(f"most={most!r}: give a whole number of rows from 1 up.")
    return int(most)


def checked_names(names: Any, features: int) -> list[str] | None:
    """Return one name for each feature, as text."""
    if names is None:
        return None
    if isinstance(names, str):
        raise ReportError(f"feature_names={names!r} is one text: give a list of {features} names.")
    listed = [str(name) for name in names]
    if len(listed) != features:
        raise ReportError(
            f"feature_names has {len(listed)} names, but the model has {features} features: give one each."
        )
    return listed


def checked_image_shape(shape: Any, features: int) -> tuple[int, int, int] | None:
    """Return height, width and channels of a row that is an image, or None.

    Parameters
    ----------
    shape : tuple of 2 or 3 int, "guess" or None
        "guess" takes a square of one channel, or else of three, where the features are so many.
    features : int
    """
    if shape is None:
        return None
    if isinstance(shape, str):
        return _guessed(shape, features)
    try:
        sizes = [int(size) for size in shape]
    except (TypeError, ValueError):
        sizes = []
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ReportError(
            f"image_shape={shape!r}: give (height, width) or (height, width, channels)."
        )
    height, width, channels = sizes if len(sizes) == 3 else [*sizes, 1]
    if channels not in CHANNELS:
        raise ReportError(
            f"image_shape={shape!r} has {channels} channels: 1, 3 and 4 can be drawn; give image_shape=None "
            "to see loadings instead."
        )
    if height * width * channels != features:
        raise ReportError(
            f"image_shape={shape!r} holds {height * width * channels} numbers, but the model has {features} "
            "features: give the shape of one row."
        )
    return height, width, channels


def _guessed(asked: str, features: int) -> tuple[int, int, int]:
    """Return the square image that so many features could be."""
    if asked != "guess":
        raise ReportError(
            f'image_shape={asked!r}: give (height, width), (height, width, channels) or "guess".'
        )
    for channels in (1, 3):
        side = math.isqrt(features // channels)
        if side * side * channels == features:
            return side, side, channels
    raise ReportError(
        f"{features} features are no square image of 1 or 3 channels: give image_shape=(height, width)."
    )
