"""Input data as sources of rows, which are read in blocks.

Each data format has its own module. The libraries that it needs are imported when data of that format is opened.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigengame._system.extras import install_command, package_of
from eigengame.sources._base import DEVICE_BUFFERS as DEVICE_BUFFERS
from eigengame.sources._base import Block as Block
from eigengame.sources._base import ColumnWarning as ColumnWarning
from eigengame.sources._base import GenotypeWarning as GenotypeWarning
from eigengame.sources._base import InOrder as InOrder
from eigengame.sources._base import RandomAccess as RandomAccess
from eigengame.sources._base import Source as Source
from eigengame.sources._base import SourceError as SourceError
from eigengame.sources._base import UnknownOption as UnknownOption
from eigengame.sources._layers import Layer as Layer
from eigengame.sources._layers import Layers as Layers
from eigengame.sources._paths import is_remote
from eigengame.sources.arrays import ArraySource as ArraySource
from eigengame.sources.arrays import check_two_axes
from eigengame.sources.sparse import SparseSource as SparseSource

FILES = {
    ".npy": "npy:open_npy",
    ".npz": "npz:open_npz",
    ".raw": "raw:open_raw",
    ".bin": "raw:open_raw",
    ".dat": "raw:open_raw",
    "-ubyte": "idx:open_idx",
    "-ubyte.gz": "idx:open_idx",
    ".idx": "idx:open_idx",
    ".idx.gz": "idx:open_idx",
    ".h5": "hdf5:open_hdf5",
    ".hdf5": "hdf5:open_hdf5",
    ".h5ad": "anndata:open_h5ad",
    ".zarr": "zarr_store:open_zarr",
    ".nc": "fields:open_netcdf",
    ".nc4": "fields:open_netcdf",
    ".cdf": "fields:open_netcdf",
    ".parquet": "columnar:open_parquet",
    ".arrow": "columnar:open_arrow",
    ".feather": "columnar:open_arrow",
    ".ipc": "columnar:open_arrow",
    ".csv": "csv:CsvSource",
    ".csv.gz": "csv:CsvSource",
    ".tsv": "csv:CsvSource",
    ".tsv.gz": "csv:CsvSource",
    ".txt": "csv:CsvSource",
    ".bed": "plink:BedSource",
    ".pgen": "pgen:PgenSource",
}
"""Functions that open a path, by its ending. The longest matching ending is used."""

PLINK = {".bim": ".bed", ".fam": ".bed", ".pvar": ".pgen", ".psam": ".pgen"}
"""Files beside genotypes, and the ending of the genotypes."""

OBJECTS = {
    "pandas": "frames:from_frame",
    "polars": "frames:from_frame",
    "pyarrow": "frames:from_frame",
    "h5py": "hdf5:from_dataset",
    "zarr": "zarr_store:from_array",
    "anndata": "anndata:from_anndata",
    "xarray": "fields:from_xarray",
    "torch": "torch.data:from_torch",
    "jax": "arrays:from_jax",
    "jaxlib": "arrays:from_jax",
    "dask": "dask_blocks:from_dask",
    "dask_expr": "dask_blocks:from_dask",
}
"""Functions that open an object, by the library of its class."""


def as_source(data: Any, **options: Any) -> Source:
    """Return a source of rows for any supported data.

    Parameters
    ----------
    data : Source, array, sparse matrix, data frame, dataset, path, list of paths, or iterable of arrays
        Paths can be files or folders, and for most formats fsspec addresses. `FILES` lists the supported
        endings; a PLINK prefix stands for its `.bed` or `.pgen` file. The rows of several paths are concatenated.
    **options
        Options of the format, for example `key="layers/counts"` or `columns=["a", "b"]`.
    """
    if isinstance(data, Source):
        if options:
            given = ", ".join(options)
            raise UnknownOption(f"{data.name} is a source already: give {given} when it is opened.")
        return data
    if isinstance(data, (str, os.PathLike)):
        path = _with_ending(os.fspath(data))
        source = _open_path(path, options)
        source.opened_from = (_absolute(path), options)
        source.given_path = path
        return source
    if issparse(data):
        return _open("sparse:SparseSource", data, {"name": "X"} | options)
    library = library_of(data)
    if library is not None:
        return _open(OBJECTS[library], data, options)
    if isinstance(data, np.ndarray):
        return _from_array(data, options)
    if isinstance(data, (list, tuple)):
        return _from_list(data, options)
    axes = getattr(data, "shape", None)
    if isinstance(axes, tuple):
        # An array of an unknown library. Iterating over it would treat its slices as tables.
        check_two_axes(f"the {type(data).__name__}", axes)
    if isinstance(data, Iterator) or hasattr(data, "__iter__"):
        return _open("iterators:IteratorSource", data, options)
    raise SourceError(
        f"{type(data).__name__} has no rows: give an array, a sparse matrix, a data frame, a path that ends in "
        f"one of {', '.join(FILES)}, or an iterable of arrays."
    )


def library_of(data: Any) -> str | None:
    """Return the library in `OBJECTS` that defines the class of an object, or one of its base classes."""
    libraries = (kind.__module__.split(".")[0] for kind in type(data).__mro__)
    return next((library for library in libraries if library in OBJECTS), None)


def _with_ending(path: str) -> str:
    """Return the `.bed` or `.pgen` file of a PLINK prefix, or of a file beside it; other paths are not changed."""
    if is_remote(path) or _opener_of(path) is not None:
        return path
    stem, ending = os.path.splitext(path)
    if ending not in PLINK and os.path.exists(path):
        return path
    stems = [f"{stem}{PLINK[ending]}"] if ending in PLINK else [f"{path}.bed", f"{path}.pgen"]
    found = [one for one in stems if os.path.isfile(one)]
    if len(found) > 1:
        raise SourceError(f"{path} stands for {' and '.join(found)}: give one of them.")
    return found[0] if found else path


def _open_path(path: str, options: dict[str, Any]) -> Source:
    """Return the source of a path, by its ending or, for a folder, by its files."""
    remote, opener = is_remote(path), _opener_of(path)
    if not remote and not Path(path).exists():
        raise SourceError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    if not remote and Path(path).is_file() and Path(path).stat().st_size == 0:
        raise SourceError(f"{path} is empty: 0 bytes.")
    if opener is not None:
        return _open(opener, path, options)
    if not remote and Path(path).is_dir():
        return _open("folders:open_folder", path, options)
    raise SourceError(
        f"{path} does not end in one of {', '.join(FILES)}: rename it, or open it yourself and give the array."
    )


def _opener_of(path: str) -> str | None:
    """Return the entry of `FILES` for a path; None if its ending is unknown."""
    lowered = path.lower().rstrip("/")
    known = [ending for ending in FILES if lowered.endswith(ending)]
    return FILES[max(known, key=len)] if known else None


def _absolute(path: str) -> str:
    """Return the absolute path; addresses are not changed."""
    return path if is_remote(path) else os.path.abspath(path)


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the ending of a table, whose columns can be chosen by name."""
    opener = _opener_of(os.fspath(path))
    return opener is not None and opener.startswith(("columnar:", "csv:"))


def is_netcdf(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the ending of a netCDF file."""
    opener = _opener_of(os.fspath(path))
    return opener is not None and opener.startswith("fields:")


def is_paths(data: Any) -> bool:
    """Return whether the data is a list of paths."""
    return (
        isinstance(data, (list, tuple))
        and len(data) > 0
        and all(isinstance(one, (str, os.PathLike)) for one in data)
    )


def _from_array(data: np.ndarray, options: dict[str, Any]) -> Source:
    """Return the source of a NumPy array with two axes."""
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise SourceError(
            f"the array has {np.ma.count_masked(data)} masked values: pass data.filled(np.nan) to "
            "prepare(..., missing='mean')."
        )
    check_two_axes("the array", data.shape)
    if data.dtype.kind not in "fiub":
        raise SourceError(
            f"the array has dtype {data.dtype}: give numbers, for example by astype(float)."
        )
    return _open("arrays:ArraySource", data, {"name": "X"} | options)


def _from_list(data: Any, options: dict[str, Any]) -> Source:
    """Return the source of a list of paths, a list of arrays, or nested lists."""
    if is_paths(data):
        return _open("concatenation:open_all", data, options)
    if len(data) and all(getattr(part, "ndim", 0) == 2 for part in data):
        return _open("iterators:IteratorSource", data, options)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise SourceError(
            f"the list is not a table of numbers ({error}): give rows of one length."
        ) from None
    return _from_array(array, options)


def _open(target: str, data: Any, options: dict[str, Any]) -> Source:
    """Import `module:name` of this package and call it on the data."""
    module, name = target.split(":")
    try:
        return getattr(importlib.import_module(f"eigengame.sources.{module}"), name)(
            data, **options
        )
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "eigengame":
            raise
        raise SourceError(
            f"{package_of(error.name)} is needed to read this data: {install_command(error.name)}."
        ) from None
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise UnknownOption(f"{error}: that option does not belong to this kind of data.") from None
