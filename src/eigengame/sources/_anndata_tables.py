"""Annotation tables of `.h5ad` files (`obs`, `var`), in all versions of the format."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame.sources._hdf5_file import decode_string
from eigengame.sources._hdf5_links import find


def column_names(table: Any) -> list[str]:
    """Return the names of the columns of a table, which is a group or, before 2019, a compound dataset."""
    import h5py

    if isinstance(table, h5py.Dataset):
        return list(table.dtype.names or ())
    return [key for key in table or () if not key.startswith("__")]


def read_column(place: Any, key: str, name: str, external: bool = False) -> list[Any] | None:
    """Return the values of a column, None where one is missing; None if there is no such column.

    Parameters
    ----------
    place : h5py.File or h5py.Group
        Group that contains the table.
    key : str
        Name of the table, such as "obs".
    name : str
    external : bool
        Whether the file may take the data from other files.
    """
    import h5py

    table = find(place, key, external=external)
    if table is None or name not in column_names(table):
        return None
    if isinstance(table, h5py.Dataset):
        # Before 2019 tables were compound datasets of codes, with the categories in `uns`.
        categories = find(place, f"uns/{name}_categories", external=external)
        values = _plain(table[name])
        if categories is None or table.dtype[name].kind not in "iu":
            return values
        return _decoded(values, _plain(categories[()]))
    column = find(table, name, external=external)
    # Before 2022 the categories of all columns were in one group.
    categories = find(table, f"__categories/{name}", external=external)
    if categories is not None and isinstance(column, h5py.Dataset):
        return _decoded(_plain(column[()]), _values(categories, external))
    return _values(column, external)


def index_names(place: Any, key: str, external: bool = False) -> list[str] | None:
    """Return the index of an annotation table in a file, in any version of the format; None if it has none."""
    import h5py

    table = find(place, key, external=external)
    if isinstance(table, h5py.Dataset):
        fields = table.dtype.names or ()
        name = next((one for one in ("index", "_index", *fields) if one in fields), None)
    else:
        name = decode_string(table.attrs.get("_index", "_index"))
    values = None if name is None else read_column(place, key, name, external)
    return None if values is None else ["" if one is None else str(one) for one in values]


def _values(node: Any, external: bool) -> list[Any]:
    """Return the values of a column or of categories: an array, categories with codes, or values with a mask."""
    import h5py

    if isinstance(node, h5py.Dataset):
        return _plain(node[()])
    categories = find(node, "categories", external=external)
    if categories is not None:
        codes = _plain(find(node, "codes", external=external)[()])
        return _decoded(codes, _values(categories, external))
    values = _values(find(node, "values", external=external), external)
    mask = find(node, "mask", external=external)
    if mask is None:
        return values
    return [
        None if absent else value for value, absent in zip(values, _plain(mask[()]), strict=True)
    ]


def _decoded(codes: list[Any], categories: list[Any]) -> list[Any]:
    """Return the category of each code; a negative code means a missing value."""
    return [None if code < 0 else categories[code] for code in codes]


def _plain(array: Any) -> list[Any]:
    """Return an array as a list of Python objects, with texts for bytes."""
    return [
        one.decode() if isinstance(one, bytes) else one
        for one in np.asarray(array).ravel().tolist()
    ]
