"""HDF5: datasets, CSR groups and the count matrices of 10x Genomics, read in blocks.

Files can be local or at an fsspec address.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from eigengame._system.reused_memory import aligned_empty
from eigengame.sources._base import Source, SourceError
from eigengame.sources._chunked_array import ChunkedArraySource
from eigengame.sources._hdf5_file import (
    SPARSE,
    decode_strings,
    explain_damage,
    missing_codecs,
    open_file,
)
from eigengame.sources._hdf5_links import find
from eigengame.sources._map_coordinates import map_coordinates
from eigengame.sources._stored_arrays import ArrayInfo, choose_array, list_arrays
from eigengame.sources._stored_csr import StoredCsrSource

GENE_NAMES = ("features/name", "gene_names", "genes")
"""Places of the gene names in 10x Genomics files, newest layout first."""

BARCODES = "barcodes"
"""Names of the cells in 10x Genomics files."""

FILL = ("_FillValue", "missing_value")
"""netCDF attributes with the number that marks a missing value."""

PACKED = {"scale_factor": 1, "add_offset": 0}
"""netCDF attributes that scale stored numbers, with the values that change nothing."""

Opener = Callable[[], AbstractContextManager[Any]]


class Hdf5Source(ChunkedArraySource):
    """Rows of one dataset. Axes after the first are flattened.

    Numbers that netCDF marks as missing (`_FillValue`, `missing_value`) become NaN.

    Parameters
    ----------
    open_dataset : callable
        Returns a context manager that opens the dataset for reading. Each pass opens its own, so passes may
        run on any thread.
    name : str
    path, key : str, optional
        File, and the place of the dataset in it, for the fingerprint.
    max_bytes : int, optional
        Largest size of a chunk. Defaults to 4 GiB.
    """

    def __init__(
        self,
        open_dataset: Opener,
        name: str,
        path: str | None = None,
        key: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._open_dataset, self.path, self.key = open_dataset, path, key
        with open_dataset() as dataset:
            shape, chunks = dataset.shape or (), dataset.chunks
            super().__init__(name, shape, dataset.dtype, chunks, max_bytes)
            attributes = getattr(dataset, "attrs", {})
            _refuse_packed(name, attributes)
            self._fill_values = _fill_values(attributes)
            self.coordinates = map_coordinates(dataset)

    def open_array(self) -> AbstractContextManager[Any]:
        """Open the dataset."""
        return self._open_dataset()

    def fetch(self, array: Any, begin: int, end: int) -> np.ndarray:
        """Return rows of the open dataset, in memory that JAX can use without a copy."""
        rows = aligned_empty((end - begin, *array.shape[1:]), array.dtype)
        array.read_direct(rows, np.s_[begin:end])
        return self._fill_to_nan(rows, begin)

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return columns `first` to `last` of these rows."""
        return self._fill_to_nan(super().read_columns(begin, end, first, last), begin)

    def _fill_to_nan(self, rows: np.ndarray, begin: int) -> np.ndarray:
        """Replace fill values by NaN; raise for integers, which have no NaN."""
        for fill in self._fill_values:
            missing = rows == np.asarray(fill).astype(rows.dtype)
            if not missing.any():
                continue
            if rows.dtype.kind != "f":
                row = begin + int(np.argwhere(missing)[0][0])
                raise SourceError(
                    f"{self.name}: row {row} has the value {fill}, which the file marks as missing, and "
                    f"{rows.dtype} has no NaN: write the data as floats, or without missing values."
                )
            rows[missing] = np.nan
        return rows

    def failure_cause(self, array: Any) -> str:
        """Return the probable cause of a failed read: a missing codec, damage or a closed file."""
        missing = missing_codecs(array)
        if missing:
            return f"its codec is missing ({missing}); pip install hdf5plugin provides many"
        return "it is damaged, or its file was closed"


class Opening(NamedTuple):
    """Options for opening a file.

    Attributes
    ----------
    path : str, optional
        None if the user opened the file.
    external : bool
        Whether the data may be in other files.
    max_bytes : int, optional
        Largest size of a chunk, or of a part that must be in memory as a whole.
    """

    path: str | None
    external: bool = False
    max_bytes: int | None = None


def open_hdf5(
    path: str | os.PathLike[str],
    key: str | None = None,
    name: str | None = None,
    external: bool = False,
    max_bytes: int | None = None,
) -> Source:
    """Return the rows of a dataset or of a sparse group of an HDF5 file.

    Parameters
    ----------
    path : path or address
    key : str, optional
        Dataset or group. Not needed if only one of them has rows of numbers. The counts of a 10x Genomics
        file are recognised by their layout; cells are rows, and genes have names.
    name : str, optional
        Defaults to the path.
    external : bool
        Whether the file may take the data from other files: by external links, external storage or virtual
        datasets.
    max_bytes : int, optional
        Largest size of a chunk, and of the row pointers of a sparse matrix. Defaults to 4 GiB.
    """
    found = os.fspath(path)
    with open_file(found) as file:
        return _source(file, key, name or found, Opening(found, external, max_bytes))


def from_dataset(
    data: Any,
    key: str | None = None,
    name: str | None = None,
    external: bool = False,
    max_bytes: int | None = None,
) -> Source:
    """Return the rows of an open h5py dataset, file or group, which must stay open while it is read."""
    import h5py

    name = name or f"{data.file.filename}:{data.name}"
    if not isinstance(data, h5py.Dataset):
        source = _source(data, key, name, Opening(None, external, max_bytes))
    elif key is not None:
        raise SourceError(f"{name} is one dataset, without keys: leave out key={key!r}.")
    else:
        source = Hdf5Source(
            lambda: contextlib.nullcontext(data), name, key=data.name, max_bytes=max_bytes
        )
    source.given_path = data.file.filename
    return source


def _source(place: Any, key: str | None, name: str, opening: Opening) -> Source:
    """Return the source at a key of a file or group, or of its only table."""
    import h5py

    with explain_damage(name):
        path, external, max_bytes = opening
        node = place if key is None else find(place, key, external=external)
        if node is None:
            raise SourceError(f"{name} has no {key!r}: it contains {list_arrays(_tables(place))}.")
        if isinstance(node, h5py.Group) and not _is_sparse(node, external):
            prefix = "" if key is None else f"{key.strip('/')}/"
            tables = {prefix + where: array for where, array in _tables(node).items()}
            chosen = choose_array(f"{name}:{key}" if key else name, tables, None)
            node = find(place, chosen, external=external, members=SPARSE)
        where: str = node.name
        name = f"{name}:{where}"
        open_node: Opener = (
            (lambda: contextlib.nullcontext(node))
            if path is None
            else functools.partial(open_file, path, where, external=external)
        )
        if isinstance(node, h5py.Group):
            return _sparse_source(node, open_node, name, opening)
        return Hdf5Source(open_node, name, path, where, max_bytes)


def _fill_values(attributes: Any) -> list[Any]:
    """Return the finite numbers that mark missing values."""
    found = [number for key in FILL if key in attributes for number in np.ravel(attributes[key])]
    return [
        number
        for number in found
        if isinstance(number, (np.integer, np.floating)) and np.isfinite(number)
    ]


def _refuse_packed(name: str, attributes: Any) -> None:
    """Raise if stored numbers must be scaled to give the values."""
    seen = {key: attributes[key] for key in PACKED if key in attributes}
    if any(np.any(np.ravel(value) != PACKED[key]) for key, value in seen.items()):
        shown = ", ".join(f"{key}={np.ravel(value)[0]}" for key, value in seen.items())
        raise SourceError(
            f"{name} is packed ({shown}): the stored numbers are not the values. Unpack it first, for "
            "example by xarray, and write it again."
        )


def _tables(place: Any) -> dict[str, ArrayInfo]:
    """Return the datasets and sparse groups of a file or group."""
    import h5py

    found: dict[str, ArrayInfo] = {}

    def visit(key: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            found[key] = ArrayInfo(tuple(node.shape or ()), node.dtype)
        elif _is_readable_sparse(node):
            found[key] = ArrayInfo(_stated_shape(node), node["data"].dtype)

    place.visititems(visit)
    return found


def _is_readable_sparse(group: Any) -> bool:
    """Return whether a group is a sparse matrix without parts in other files."""
    try:
        return _is_sparse(group)
    except SourceError:
        return False  # refused only if it is chosen


def _is_sparse(group: Any, external: bool = False) -> bool:
    """Return whether a group is a sparse matrix. Members in other files are refused unless `external`."""
    parts = [find(group, part, external=external) for part in SPARSE]
    return all(part is not None for part in parts) and len(_stated_shape(group)) == 2


def _stated_shape(group: Any) -> tuple[int, ...]:
    """Return the shape in the attributes or members of a sparse group; empty if there is none."""
    stated = group.attrs.get("shape")
    if stated is None:
        member = find(group, "shape")
        stated = None if member is None else member[()]
    return () if stated is None else tuple(int(length) for length in np.ravel(stated))


def _sparse_source(group: Any, open_group: Opener, name: str, opening: Opening) -> Source:
    """Return the rows of a sparse group: the cells of 10x counts, or the rows of a CSR matrix."""
    rows, columns = _stated_shape(group)
    names = None
    if find(group, BARCODES) is not None:
        # 10x stores genes x cells by columns (CSC): the same arrays are cells x genes by rows (CSR).
        rows, columns = columns, rows
        found = (find(group, key) for key in GENE_NAMES)
        names = next((decode_strings(one[:]) for one in found if one is not None), None)
    elif str(group.attrs.get("encoding-type", "csr")).startswith("csc") or (
        len(group["indptr"]) != rows + 1
    ):
        raise SourceError(
            f"{name} is a sparse matrix stored by columns (CSC), which cannot be read by rows: write it as "
            "CSR, for example by scipy's tocsr()."
        )
    source = StoredCsrSource(
        open_group,
        (rows, columns),
        name,
        feature_names=names,
        path=opening.path,
        key=group.name,
        max_bytes=opening.max_bytes,
    )
    if find(group, BARCODES) is not None:
        source.read_row_ids = functools.partial(_barcodes, open_group)
    return source


def _barcodes(open_group: Opener) -> list[str]:
    """Return the barcodes of the cells of 10x counts."""
    with open_group() as group:
        return decode_strings(find(group, BARCODES)[:])
