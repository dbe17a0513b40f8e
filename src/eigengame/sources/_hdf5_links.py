"""Objects of an HDF5 file, without the files that it may refer to.

External links, external storage and virtual datasets take their data from other files, which the file names. A file
from elsewhere could read any file of the user in this way, so these are refused unless the user allows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eigengame.sources._base import SourceError

MAX_LINKS = 32
"""Number of soft links that are followed one after the other. More of them are a cycle."""


def find(
    place: Any, key: str, *, external: bool = False, members: Sequence[str] = (), links: int = 0
) -> Any:
    """Return the object at a key of a file or group; None if there is none.

    Parameters
    ----------
    place : h5py.File or h5py.Group
    key : str
    external : bool
        Whether the data may be in other files.
    members : sequence of str
        Members that will be read if the object is a group. They are checked too.
    links : int
        Soft links that were followed already.
    """
    import h5py

    if external:
        return place.get(key)
    node = place.file["/"] if key.startswith("/") else place
    for part in filter(None, key.split("/")):
        if not isinstance(node, h5py.Group):
            return None
        node = node if part == "." else _member(node, part, links)
        if node is None:
            return None
    if isinstance(node, h5py.Dataset):
        _refuse_other_files(node)
    else:
        for member in members:
            find(node, member)
    return node


def _member(group: Any, name: str, links: int) -> Any:
    """Return a member of a group; follow soft links, refuse external ones."""
    from h5py import h5l

    low, encoded = group.id.links, name.encode()
    if not low.exists(encoded):
        return None
    kind = low.get_info(encoded).type
    if kind == h5l.TYPE_HARD:
        return group[name]
    where = f"{group.file.filename}:{group.name.rstrip('/')}/{name}"
    if kind != h5l.TYPE_SOFT:
        raise _refused(where, low.get_val(encoded)[0])
    if links >= MAX_LINKS:
        raise SourceError(f"{where} is a cycle of links: give another key.")
    return find(group, low.get_val(encoded).decode(errors="replace"), links=links + 1)


def _refuse_other_files(dataset: Any) -> None:
    """Raise if the numbers of a dataset are in other files."""
    where = f"{dataset.file.filename}:{dataset.name}"
    for stored in dataset.external or ():
        raise _refused(where, stored[0])
    if dataset.is_virtual:
        for part in dataset.virtual_sources():
            if part.file_name != ".":
                raise _refused(where, part.file_name)


def _refused(where: str, other: Any) -> SourceError:
    name = other.decode(errors="replace") if isinstance(other, bytes) else str(other)
    return SourceError(
        f"{where} takes its data from another file, {name!r}: give external=True to as_source (--external) if you "
        "trust both files."
    )
