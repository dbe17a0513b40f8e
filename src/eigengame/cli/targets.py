"""Where results go: a name where none is given, and nothing written over unasked."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path


def stem_of(data: str) -> str:
    """Return the name of some data without folders and endings."""
    from eigengame.sources import FILES

    name = data.rstrip("/").rsplit("/", 1)[-1] if "://" in data else Path(data).resolve().name
    known = [len(ending) for ending in FILES if name.lower().endswith(ending)]
    return name[: -max(known)] or name if known else name


def refuse_target(path: Path, endings: Collection[str], *, force: bool) -> None:
    """Raise where a file cannot or must not be written, before hours are spent on what goes in it."""
    if path.suffix not in endings:
        raise ValueError(f"{path}: give a name that ends in {' or '.join(endings)}.")
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a folder: make it first.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists: give --force to write over it, or another name by -o.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path.parent} cannot be written to: give another place by -o.")
