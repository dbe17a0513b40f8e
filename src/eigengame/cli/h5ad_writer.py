"""Write scores into `obsm` of an `.h5ad` file that appears only when it is complete."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eigengame._system.atomic_write import atomic_write
from eigengame.cli.hdf5_output import FileWithoutErrors, open_output
from eigengame.cli.score_writer import Blocks, Ids, convert_read_errors

KEY = "X_pca"
"""Default key of the scores, which scanpy uses."""

ENDING = ".h5ad"

GROUPS = ("layers", "obsm", "obsp", "uns", "varm", "varp")
"""Groups of AnnData that map names to arrays."""


def is_h5ad(data: str) -> bool:
    """Return whether data is the path or address of an `.h5ad` file."""
    return data.lower().rstrip("/").endswith(ENDING)


def check_key(data: str, key: str, *, force: bool) -> None:
    """Raise ValueError if `obsm` of the data has the key already, or the key cannot be one; `force` replaces it."""
    if not key or "/" in key or key == ".":
        raise ValueError(f"--obsm {key!r}: give a name without slashes, such as {KEY}.")
    if not is_h5ad(data) or force:
        return
    import h5py

    from eigengame.sources._hdf5_file import explain_damage, open_file
    from eigengame.sources._hdf5_links import find

    with open_file(data) as file, explain_damage(data):
        obsm = find(file, "obsm")
        known = list((obsm.dtype.names or ()) if isinstance(obsm, h5py.Dataset) else obsm or ())
    if key in known:
        raise ValueError(
            f"obsm of {data} has {key} already: give another name with --obsm, or --force to replace it in the "
            "file that is written."
        )


def write_obsm(
    path: Path, blocks: Blocks, count: int, *, data: str, ids: Ids, key: str = KEY
) -> int:
    """Write blocks of scores to `obsm` and return the number of rows.

    If the data is an `.h5ad` file, the result is a copy of it with the scores added. Otherwise it is a new file
    with the ids of the rows in `obs`, and without X.

    Parameters
    ----------
    path : path
    blocks : iterator of arrays of shape (m, count)
        Only one block is in memory at a time.
    count : int
        Number of components.
    data : str
        Path or address of the data.
    ids : mapping of str to sequence of str
        Columns that identify the rows, for a new file.
    key : str
        Key in `obsm`. An array with this key is replaced.
    """
    with atomic_write(path) as draft:
        if is_h5ad(data):
            _copy(data, draft)
        with open_output(draft) as (file, output):
            obsm = _obsm_of(file)
            if key in obsm:
                del obsm[key]
            rows = _append(obsm, key, convert_read_errors(blocks), count, output)
            if not is_h5ad(data):
                _add_tables(file, rows, ids)
        return rows


def _copy(data: str, draft: Path) -> None:
    """Copy a local or remote file."""
    from eigengame.sources import SourceError
    from eigengame.sources._paths import is_remote, open_binary

    if not is_remote(data):
        shutil.copyfile(data, draft)
        return
    with draft.open("wb") as copy:
        try:
            opened = open_binary(data)
        except OSError as error:
            raise SourceError(f"{data} cannot be read: {error}.") from error
        with opened as file:
            shutil.copyfileobj(file, copy, 2**24)


def _obsm_of(file: Any) -> Any:
    """Return the group `obsm`. The compound dataset of files from before 2019 is converted to a group."""
    import h5py

    old = file.get("obsm")
    if isinstance(old, h5py.Group):
        return old
    arrays = {} if old is None else {name: old[name] for name in old.dtype.names or ()}
    if old is not None:
        del file["obsm"]
    group = _group(file, "obsm", "dict", "0.1.0")
    for name, array in arrays.items():
        _array(group, name, array)
    return group


def _append(group: Any, key: str, blocks: Blocks, count: int, output: FileWithoutErrors) -> int:
    """Write blocks one after the other to an array, and return the number of rows."""
    rows, dataset = 0, None
    for block in blocks:
        if dataset is None:
            shape, most = (0, count), (None, count)
            chunks = (max(1, min(len(block), 2**17 // count)), count)
            dataset = group.create_dataset(
                key, shape, block.dtype, maxshape=most, chunks=chunks, track_times=False
            )
        dataset.resize(rows + len(block), axis=0)
        dataset[rows:] = block
        output.raise_error()
        rows += len(block)
    if dataset is None:
        dataset = group.create_dataset(key, (0, count), np.float64)
    dataset.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    return rows


def _add_tables(file: Any, rows: int, ids: Ids) -> None:
    """Write what a new file needs beside `obsm`: names of the rows, and empty groups."""
    file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    for name in GROUPS:
        if name not in file:
            _group(file, name, "dict", "0.1.0")
    index = next((ids[name] for name in ("id", "IID") if name in ids), None)
    names = [str(i) for i in range(rows)] if index is None else index
    _table(file, "obs", names, {name: values for name, values in ids.items() if name == "FID"})
    _table(file, "var", [], {})


def _table(file: Any, key: str, index: Sequence[str], columns: Mapping[str, Sequence[str]]) -> None:
    """Write a table of texts in the encoding of anndata."""
    group = _group(file, key, "dataframe", "0.2.0")
    order = np.array(list(columns), dtype=object) if columns else np.zeros(0, np.float64)
    group.attrs["_index"] = "_index"
    group.attrs["column-order"] = order
    for name, texts in {"_index": index, **columns}.items():
        _array(group, name, np.array(list(texts), dtype=object))


def _group(place: Any, key: str, encoding: str, version: str) -> Any:
    group = place.create_group(key)
    group.attrs.update({"encoding-type": encoding, "encoding-version": version})
    return group


def _array(group: Any, key: str, array: np.ndarray) -> None:
    """Write an array of numbers or texts in the encoding of anndata."""
    import h5py

    text = array.dtype == object
    dataset = group.create_dataset(key, data=array, dtype=h5py.string_dtype() if text else None)
    encoding = "string-array" if text else "array"
    dataset.attrs.update({"encoding-type": encoding, "encoding-version": "0.2.0"})
