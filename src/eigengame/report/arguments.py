"""Checks of the arguments of `write_report`, before any data is read."""

from __future__ import annotations

import math
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from eigengame.estimator.pca import EigenGamePCA

CHANNELS = {1: ["loading"], 3: ["red", "green", "blue"], 4: ["red", "green", "blue", "alpha"]}
"""Names of the channels of an image, by their number."""


class ReportError(ValueError):
    """Invalid argument of a report; the message names the value and the fix."""


def check_model(model: Any) -> None:
    """Raise an error unless `model` is a fitted EigenGamePCA."""
    if not isinstance(model, EigenGamePCA):
        raise ReportError(
            f"model is a {type(model).__name__}: give a fitted EigenGamePCA, or EigenGamePCA.load(path)."
        )
    check_is_fitted(model)


def check_path(path: Any) -> Path:
    """Return the path of an HTML file in an existing folder."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ReportError(f"{target}: give a file name that ends in .html.")
    if not target.parent.is_dir():
        raise ReportError(f"{target.parent} is not a folder: create it first.")
    return target


def check_most(most: Any) -> int:
    """Return the maximum number of rows to draw."""
    if isinstance(most, bool) or not isinstance(most, Integral) or most < 1:
        raise ReportError(f"most={most!r}: give a whole number of rows, at least 1.")
    return int(most)


def check_names(names: Any, features: int) -> list[str] | None:
    """Return one name per feature, as text."""
    if names is None:
        return None
    if isinstance(names, str):
        raise ReportError(
            f"feature_names={names!r} is a single string: give a list of {features} names."
        )
    listed = [str(name) for name in names]
    if len(listed) != features:
        raise ReportError(
            f"feature_names has {len(listed)} names, but the model has {features} features: give one per feature."
        )
    return listed


def check_image_shape(shape: Any, features: int) -> tuple[int, int, int] | None:
    """Return the height, width and channels of a row as an image, or None.

    Parameters
    ----------
    shape : tuple of 2 or 3 int, "guess" or None
        "guess" stands for a square image with one channel, or else with three.
    features : int
    """
    if shape is None:
        return None
    if isinstance(shape, str):
        return _guess_square(shape, features)
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
            f"image_shape={shape!r} has {channels} channels: give 1, 3 or 4, or image_shape=None to show "
            "loadings instead."
        )
    if height * width * channels != features:
        raise ReportError(
            f"image_shape={shape!r} holds {height * width * channels} numbers, but the model has {features} "
            "features: give the shape of one row."
        )
    return height, width, channels


def _guess_square(shape: str, features: int) -> tuple[int, int, int]:
    """Return the shape of a square image with this number of features."""
    if shape != "guess":
        raise ReportError(
            f'image_shape={shape!r}: give (height, width), (height, width, channels) or "guess".'
        )
    for channels in (1, 3):
        side = math.isqrt(features // channels)
        if side * side * channels == features:
            return side, side, channels
    raise ReportError(
        f"{features} features do not form a square image of 1 or 3 channels: give image_shape=(height, width)."
    )
