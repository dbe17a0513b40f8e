"""Folders, opened according to the files in them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from eigengame import sources
from eigengame.sources._base import Source, SourceError
from eigengame.sources.image_folder import ENDINGS, walk_files

STORES = ("zarr.json", ".zarray", ".zgroup")
"""Metadata files of a Zarr store."""

KINDS = {
    "images": (ENDINGS, "image_folder:ImageFolder"),
    "Parquet files": ((".parquet",), "columnar:open_parquet"),
    "Arrow files": ((".arrow", ".feather", ".ipc"), "columnar:open_arrow"),
}
"""Endings of the files in a folder, and the function that opens it."""


def open_folder(path: str | os.PathLike[str], **options: Any) -> Source:
    """Return the source of a folder of images, Parquet files or Arrow files, or of a Zarr store.

    Parameters
    ----------
    path : path
        On local disk. Subfolders are included.
    **options
        Options of the format: `size=` and `grey=` for images, `columns=` for tables, `key=` for Zarr.
    """
    folder = os.fspath(path)
    if not os.path.isdir(folder):
        raise SourceError(f"{folder} is not a folder: check the path (from {os.getcwd()}).")
    if any(os.path.exists(os.path.join(folder, store)) for store in STORES):
        return sources._open("zarr_store:open_zarr", folder, options)
    seen = Counter(Path(file).suffix.lower() or "no ending" for file in walk_files(folder))
    kinds = [kind for kind, (endings, _) in KINDS.items() if any(seen[one] for one in endings)]
    if len(kinds) == 1:
        return sources._open(KINDS[kinds[0]][1], folder, options)
    counted = ", ".join(f"{count} {ending}" for ending, count in seen.most_common(8)) or "no files"
    if kinds:
        raise SourceError(
            f"{folder} contains {' and '.join(kinds)} ({counted}): give a folder with one kind of file."
        )
    raise SourceError(
        f"{folder} contains {counted}: give a folder of images, of .parquet, .arrow or .feather files, a "
        "Zarr store, or one file."
    )
