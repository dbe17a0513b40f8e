"""Paths of output files: default names, and checks before a command starts."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from eigengame._system.atomic_write import refuse_unless_writable

FOLDERS = (".zarr",)
"""Extensions of outputs that are folders."""


def data_stem(data: str) -> str:
    """Return the name of a data path without folders and known file extensions."""
    from eigengame.sources import FILES

    name = data.rstrip("/").rsplit("/", 1)[-1] if "://" in data else Path(data).resolve().name
    known = [len(ending) for ending in FILES if name.lower().endswith(ending)]
    return name[: -max(known)] or name if known else name


def check_output_path(path: Path, endings: Collection[str], *, force: bool) -> None:
    """Raise ValueError if a file cannot or must not be written, before any computation."""
    if path.suffix not in endings:
        raise ValueError(f"{path}: give a file name that ends in {' or '.join(endings)}.")
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a folder: create it first.")
    if path.is_dir() and path.suffix not in FOLDERS:
        raise ValueError(f"{path} is a folder: give the name of a file with -o.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists: give --force to overwrite it, or another name with -o.")
    try:
        refuse_unless_writable(path)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror or error}): give another name or folder with -o."
        ) from None
