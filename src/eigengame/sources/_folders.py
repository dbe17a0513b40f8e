"""Names of data without the folders that contain it, for models and reports that are given to others."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from eigengame.sources._base import Source


def folders_of(source: Source) -> list[str]:
    """Return the folders of all paths that a source was opened with, as given and absolute."""
    return sorted({os.path.dirname(path.rstrip("/")) for path in _paths(source)} - {""})


def without_folders(facts: Any, folders: Collection[str]) -> Any:
    """Return a fingerprint whose texts do not begin with one of the folders."""
    if isinstance(facts, dict):
        return {
            without_folders(name, folders): without_folders(value, folders)
            for name, value in facts.items()
        }
    if isinstance(facts, list):
        return [without_folders(value, folders) for value in facts]
    if isinstance(facts, str):
        for folder in sorted(folders, key=len, reverse=True):
            prefix = folder if folder.endswith("/") else f"{folder}/"
            if facts.startswith(prefix):
                return facts.removeprefix(prefix)
    return facts


def _paths(source: Source) -> Iterator[str]:
    """Yield the paths of a source, and of the sources that it reads from."""
    if source.opened_from is not None:
        yield source.opened_from[0]
    if source.given_path is not None:
        yield source.given_path
    for value in vars(source).values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Source):
                yield from _paths(inner)
