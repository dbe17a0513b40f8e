"""HDF5: one dataset of a file by blocks, and the sparse counts that 10x Genomics writes.

Local paths, and addresses that fsspec knows: h5py reads from the file it opens.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from eigengame.sources import _remote_array
from eigengame.sources._base import Source, SourceError
from eigengame.sources._chunked_array import ChunkedArraySource
from eigengame.sources._digest import digest_of_blocks, digest_of_files
from eigengame.sources._stored_arrays import Array, aligned, chosen, is_remote, listed, stamp
from eigengame.sources._stored_csr import StoredCsrSource

SPARSE = ("data", "indices", "indptr")
"""What a group has that is a sparse matrix."""

NAMES = ("features/name", "gene_names", "genes")
"""Where the files of 10x Genomics have the names of genes, newest layout first."""

FILL = ("_FillValue", "missing_value")
"""Attributes of netCDF with the number that stands for a missing value."""

PACKED = {"scale_factor": 1, "add_offset": 0}
"""Attributes of netCDF that say how stored numbers become values, with those that change nothing."""

Opened = Callable[[], AbstractContextManager[Any]]


class Hdf5Source(ChunkedArraySource):
    """Rows of one dataset; axes after the first are flattened.

    Numbers that netCDF marks as missing (`_FillValue`, `missing_value`) become NaN.

    Parameters
    ----------
    opened : callable
        Returns a context manager that gives the dataset, open for reading. Each pass opens its own, so
        any thread may read and nothing stays open.
    name : str
    path, key : str, optional
        The file, and where in it the dataset is, for the fingerprint.
    """

    def __init__(
        self, opened: Opened, name: str, path: str | None = None, key: str | None = None
    ) -> None:
        self._opened, self.path, self.key = opened, path, key
        with opened() as dataset:
            super().__init__(name, dataset.shape or (), dataset.dtype, dataset.chunks)
            about = getattr(dataset, "attrs", {})
            _refuse_packed(name, about)
            self._fills = _fill_values(about)

    def opened(self) -> AbstractContextManager[Any]:
        """Give the dataset."""
        return self._opened()

    def fetched(self, array: Any, begin: int, end: int) -> np.ndarray:
        """Return some rows of the open dataset, read to where they need not be copied again."""
        rows = aligned((end - begin, *array.shape[1:]), array.dtype)
        array.read_direct(rows, np.s_[begin:end])
        return self._without_fills(rows, begin)

    def read_columns(self, begin: int, end: int, first: int, last: int) -> np.ndarray:
        """Return some columns of these rows."""
        return self._without_fills(super().read_columns(begin, end, first, last), begin)

    def _without_fills(self, rows: np.ndarray, begin: int) -> np.ndarray:
        """Return rows with NaN for missing values; whole numbers, which have no NaN, are refused."""
        for fill in self._fills:
            gone = rows == np.asarray(fill).astype(rows.dtype)
            if not gone.any():
                continue
            if rows.dtype.kind != "f":
                row = begin + int(np.argwhere(gone)[0][0])
                raise SourceError(
                    f"{self.name}: row {row} has the value {fill}, which the file marks as missing, and "
                    f"{rows.dtype} has no NaN: write the data as floats, or without missing values."
                )
            rows[gone] = np.nan
        return rows

    def remedy(self, array: Any) -> str:
        """Say what may be wrong with a dataset that could not be read."""
        missing = missing_codecs(array)
        if missing:
            return f"its codec is missing ({missing}); pip install hdf5plugin brings many"
        return "it is damaged, or its file was closed"

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, key, and the file's size and time."""
        return super().fingerprint() | stamp(self.path, self.key)

    def digest(self) -> str | None:
        """Return a digest of the file; of a dataset that the user opened, of all rows."""
        return digest_of_blocks(self) if self.path is None else digest_of_files([self.path])


def open_hdf5(
    path: str | os.PathLike[str], key: str | None = None, name: str | None = None
) -> Source:
    """Return the rows of a dataset, or of a sparse group, of an HDF5 file.

    Parameters
    ----------
    path : path or address
    key : str, optional
        Which dataset or group; not needed where only one has rows of numbers. The counts of a 10x
        Genomics file are found by their layout, cells as rows, with the names of the genes.
    name : str, optional
    """
    found = os.fspath(path)
    with opened_at(found) as file:
        return _source(file, key, name or found, found)


def from_dataset(data: Any, key: str | None = None, name: str | None = None) -> Source:
    """Return the rows of an open h5py dataset, file or group, which stays open while it is read."""
    import h5py

    name = name or f"{data.file.filename}:{data.name}"
    if not isinstance(data, h5py.Dataset):
        return _source(data, key, name, None)
    if key is not None:
        raise SourceError(f"{name} is one dataset, without keys: leave out key={key!r}.")
    return Hdf5Source(lambda: contextlib.nullcontext(data), name, key=data.name)


@contextlib.contextmanager
def opened_at(path: str, key: str | None = None) -> Iterator[Any]:
    """Give an HDF5 file, or what is at a key of it, open for reading."""
    import h5py

    with contextlib.suppress(ImportError):
        importlib.import_module("hdf5plugin")  # the import brings its codecs
    with contextlib.ExitStack() as stack:
        try:
            target: Any = path
            if is_remote(path):
                target = stack.enter_context(_remote_array.opened(path))
            file = stack.enter_context(h5py.File(target, "r"))
        except OSError as error:
            raise SourceError(
                f"{path} cannot be opened as HDF5 ({error}): check that it is whole and no one writes it."
            ) from None
        yield file if key is None else file[key]


def _source(place: Any, key: str | None, name: str, path: str | None) -> Source:
    """Return the source of what is at a key of a file or group, or of its only table."""
    import h5py

    if key is not None and key not in place:
        raise SourceError(f"{name} has no {key!r}: it holds {listed(_tables(place))}.")
    node = place if key is None else place[key]
    if isinstance(node, h5py.Group) and not _is_sparse(node):
        inside = "" if key is None else f"{key.strip('/')}/"
        tables = {inside + where: array for where, array in _tables(node).items()}
        node = place[chosen(f"{name}:{key}" if key else name, tables, None)]
    where: str = node.name
    name = f"{name}:{where}"
    opened: Opened = (
        (lambda: contextlib.nullcontext(node))
        if path is None
        else functools.partial(opened_at, path, where)
    )
    if isinstance(node, h5py.Group):
        return _sparse_source(node, opened, name, path)
    return Hdf5Source(opened, name, path, where)


def _fill_values(about: Any) -> list[Any]:
    """Return the numbers that stand for missing values, by the attributes of a dataset."""
    found = [number for key in FILL if key in about for number in np.ravel(about[key])]
    return [
        number
        for number in found
        if isinstance(number, (np.integer, np.floating)) and np.isfinite(number)
    ]


def _refuse_packed(name: str, about: Any) -> None:
    """Raise if stored numbers must be scaled to become values."""
    seen = {key: about[key] for key, nothing in PACKED.items() if key in about}
    if any(np.any(np.ravel(value) != PACKED[key]) for key, value in seen.items()):
        said = ", ".join(f"{key}={np.ravel(value)[0]}" for key, value in seen.items())
        raise SourceError(
            f"{name} is packed ({said}): the stored numbers are not the values. Unpack it first, for example by "
            "xarray, and write it again."
        )


def missing_codecs(dataset: Any) -> str:
    """Return the filters of a dataset that this machine lacks, by number and name."""
    import h5py

    if not dataset:  # closed
        return ""
    made = dataset.id.get_create_plist()
    filters = [made.get_filter(i) for i in range(made.get_nfilters())]
    return ", ".join(
        f"HDF5 filter {number} {name.decode(errors='replace')}".strip()
        for number, _, _, name in filters
        if not h5py.h5z.filter_avail(number)
    )


def _tables(place: Any) -> dict[str, Array]:
    """Return what a file or group holds: datasets, and groups that are sparse matrices."""
    import h5py

    found: dict[str, Array] = {}

    def look(key: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            found[key] = Array(tuple(node.shape or ()), node.dtype)
        elif _is_sparse(node):
            found[key] = Array(_stated_shape(node), node["data"].dtype)

    place.visititems(look)
    return found


def _is_sparse(group: Any) -> bool:
    return all(part in group for part in SPARSE) and len(_stated_shape(group)) == 2


def _stated_shape(group: Any) -> tuple[int, ...]:
    """Return the shape that a sparse group says it has; empty where it does not."""
    stated = group.attrs.get("shape")
    if stated is None and "shape" in group:
        stated = group["shape"][()]
    return () if stated is None else tuple(int(length) for length in np.ravel(stated))


def _sparse_source(group: Any, opened: Opened, name: str, path: str | None) -> Source:
    """Return the rows of a sparse group: cells of 10x counts, or those of a CSR matrix."""
    rows, columns = _stated_shape(group)
    names = None
    if "barcodes" in group:
        # Genes by cells, compressed by columns: the same three arrays are cells by genes, by rows.
        rows, columns = columns, rows
        names = next((_texts(group[place]) for place in NAMES if place in group), None)
    elif str(group.attrs.get("encoding-type", "csr")).startswith("csc") or (
        len(group["indptr"]) != rows + 1
    ):
        raise SourceError(
            f"{name} is a sparse matrix that lies by columns (CSC), so that rows cannot be read: write it as "
            "CSR, for example by scipy's tocsr()."
        )
    return StoredCsrSource(
        opened, (rows, columns), name, feature_names=names, path=path, key=group.name
    )


def _texts(dataset: Any) -> list[str]:
    """Return a dataset of strings."""
    return [text.decode() if isinstance(text, bytes) else str(text) for text in dataset[:]]
