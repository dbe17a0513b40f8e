"""Folders: what lies in them says what they are."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from eigengame import sources
from eigengame.sources._base import Source, SourceError
from eigengame.sources.image_folder import ENDINGS, files_of

STORES = ("zarr.json", ".zarray", ".zgroup")
"""Files that a Zarr store begins with."""

KINDS = {
    "pictures": (ENDINGS, "image_folder:ImageFolder"),
    "Parquet files": ((".parquet",), "columnar:open_parquet"),
    "Arrow files": ((".arrow", ".feather", ".ipc"), "columnar:open_arrow"),
}
"""What opens a folder, by how the names of its files end."""


def open_folder(path: str | os.PathLike[str], **options: Any) -> Source:
    """Return the source of a folder: pictures, Parquet or Arrow files, or a Zarr store without its ending.

    Parameters
    ----------
    path : path
        On local disk; sub-folders count.
    **options
        Passed to what opens it: `size=` and `grey=` for pictures, `columns=` for tables, `key=` for Zarr.
    """
    folder = os.fspath(path)
    if not os.path.isdir(folder):
        raise SourceError(f"{folder} is no folder: check the path (from {os.getcwd()}).")
    if any(os.path.exists(os.path.join(folder, store)) for store in STORES):
        return sources._made("zarr_store:open_zarr", folder, options)
    seen = Counter(Path(file).suffix.lower() or "no ending" for file in files_of(folder))
    held = [kind for kind, (endings, _) in KINDS.items() if any(seen[one] for one in endings)]
    if len(held) == 1:
        return sources._made(KINDS[held[0]][1], folder, options)
    counted = ", ".join(f"{count} {ending}" for ending, count in seen.most_common(8)) or "no files"
    if held:
        raise SourceError(
            f"{folder} holds {' and '.join(held)} ({counted}): give a folder with one kind."
        )
    raise SourceError(
        f"{folder} holds {counted}: give a folder of pictures, of .parquet, .arrow or .feather files, a "
        "Zarr store, or one file."
    )
