"""HDF5 files: opening, codecs, text and errors."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from eigengame.sources._base import SourceError, one_line
from eigengame.sources._hdf5_links import find
from eigengame.sources._paths import is_remote, open_binary

SPARSE = ("data", "indices", "indptr")
"""Members of a group that is a sparse matrix."""


@contextlib.contextmanager
def open_file(path: str, key: str | None = None, *, external: bool = False) -> Iterator[Any]:
    """Open an HDF5 file for reading, or the object at a key of it."""
    import h5py

    with contextlib.suppress(ImportError):
        importlib.import_module("hdf5plugin")  # registers its codecs
    with contextlib.ExitStack() as stack:
        try:
            target: Any = path
            if is_remote(path):
                target = stack.enter_context(open_binary(path))
            file = stack.enter_context(h5py.File(target, "r"))
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            raise SourceError(
                f"{path} cannot be opened as HDF5 ({one_line(error)}): check that it is complete and not open "
                "for writing."
            ) from None
        if key is None:
            yield file
            return
        with explain_damage(path):
            node = find(file, key, external=external, members=SPARSE)
            if node is None:
                raise SourceError(f"{path} has no {key!r} any more: it was changed; start again.")
        yield node


@contextlib.contextmanager
def explain_damage(name: str) -> Iterator[None]:
    """Turn an error of h5py into a `SourceError`."""
    try:
        yield
    except (MemoryError, SourceError):
        raise
    except Exception as error:  # damaged metadata raises errors of many types
        raise SourceError(
            f"{name} is damaged ({type(error).__name__}: {one_line(error)}): copy or write it again."
        ) from error


def missing_codecs(dataset: Any) -> str:
    """Return number and name of the dataset's filters that are not installed."""
    import h5py

    if not dataset:  # closed
        return ""
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    return ", ".join(
        f"HDF5 filter {number} {name.decode(errors='replace')}".strip()
        for number, _, _, name in filters
        if not h5py.h5z.filter_avail(number)
    )


def decode_strings(values: Any) -> list[str]:
    """Return an array of strings or bytes as a list of strings."""
    return [decode_string(value) for value in values]


def decode_string(value: Any) -> str:
    """Return a string from a string or bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
