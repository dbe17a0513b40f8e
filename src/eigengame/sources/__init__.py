"""Where rows come from: each source gives blocks from a cursor and knows nothing of players.

One small file for each family; what it needs is imported when it is asked for.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigengame.sources._base import DEVICE_BUFFERS as DEVICE_BUFFERS
from eigengame.sources._base import Block as Block
from eigengame.sources._base import ColumnWarning as ColumnWarning
from eigengame.sources._base import InOrder as InOrder
from eigengame.sources._base import RandomAccess as RandomAccess
from eigengame.sources._base import Source as Source
from eigengame.sources._base import SourceError as SourceError
from eigengame.sources._base import UnknownOption as UnknownOption
from eigengame.sources._layers import Layer as Layer
from eigengame.sources._layers import Layers as Layers
from eigengame.sources.arrays import ArraySource as ArraySource
from eigengame.sources.arrays import refuse_unless_table
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
}
"""What opens a path, by how its name ends; the longest ending counts."""

OBJECTS = {
    "pandas": "frames:from_frame",
    "polars": "frames:from_frame",
    "pyarrow": "frames:from_frame",
    "h5py": "hdf5:from_dataset",
    "zarr": "zarr_store:from_array",
    "anndata": "anndata:from_anndata",
    "torch": "torch.data:from_torch",
    "jax": "device:from_jax",
    "jaxlib": "device:from_jax",
    "dask": "dask_blocks:from_dask",
    "dask_expr": "dask_blocks:from_dask",
}
"""What opens an object, by the library its class belongs to."""

PACKAGES = {"PIL": "pillow", "bed_reader": "bed-reader"}
"""Libraries that are installed by another name."""


def as_source(data: Any, **options: Any) -> Source:
    """Return a source for anything that has rows of numbers.

    Parameters
    ----------
    data : Source, array, sparse matrix, data frame, dataset, path, list of paths, or iterable of arrays
        Paths may be files, folders, or addresses that fsspec knows where the library beneath takes
        them; `FILES` says which endings are known. Rows of several paths follow one another.
    **options
        Passed to what opens it, for example `key="layers/counts"` or `columns=["a", "b"]`.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        source = _open_path(os.fspath(data), options)
        source.came_from = (_absolute(os.fspath(data)), options)
        return source
    if issparse(data):
        return _made("sparse:SparseSource", data, {"name": "X"} | options)
    library = library_of(data)
    if library is not None:
        return _made(OBJECTS[library], data, options)
    if isinstance(data, np.ndarray):
        return _from_array(data, options)
    if isinstance(data, (list, tuple)):
        return _from_list(data, options)
    axes = getattr(data, "shape", None)
    if isinstance(axes, tuple):
        # Another library's array: its pieces along the first axis would be taken for tables.
        refuse_unless_table(f"the {type(data).__name__}", axes)
    if isinstance(data, Iterator) or hasattr(data, "__iter__"):
        return _made("iterators:IteratorSource", data, options)
    raise SourceError(
        f"{type(data).__name__} is not something with rows: give an array, a sparse matrix, a data frame, "
        f"a path that ends in one of {', '.join(FILES)}, or an iterable of arrays."
    )


def library_of(data: Any) -> str | None:
    """Return which library of `OBJECTS` an object belongs to, by its class or one that it derives from."""
    libraries = (kind.__module__.split(".")[0] for kind in type(data).__mro__)
    return next((library for library in libraries if library in OBJECTS), None)


def _open_path(path: str, options: dict[str, Any]) -> Source:
    """Return the source of a path, by its ending or, for a folder, by what lies in it."""
    lowered = path.lower().rstrip("/")
    remote = "://" in path
    known = [ending for ending in FILES if lowered.endswith(ending)]
    if not remote and not Path(path).exists():
        raise SourceError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    if not remote and Path(path).is_file() and Path(path).stat().st_size == 0:
        raise SourceError(f"{path} is empty: 0 bytes.")
    if known:
        return _made(FILES[max(known, key=len)], path, options)
    if not remote and Path(path).is_dir():
        return _made("folders:open_folder", path, options)
    raise SourceError(
        f"{path} ends in none of {', '.join(FILES)}: rename it, or open it yourself and give the array."
    )


def _absolute(path: str) -> str:
    """Return a path that means the same from any folder; addresses do so as they are."""
    return path if "://" in path else os.path.abspath(path)


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a table, by its ending: its columns can be chosen by name."""
    lowered = os.fspath(path).lower().rstrip("/")
    known = [ending for ending in FILES if lowered.endswith(ending)]
    return bool(known) and FILES[max(known, key=len)].startswith(("columnar:", "csv:"))


def is_paths(data: Any) -> bool:
    """Say whether something is a list of paths."""
    return (
        isinstance(data, (list, tuple))
        and len(data) > 0
        and all(isinstance(one, (str, os.PathLike)) for one in data)
    )


def _from_array(data: np.ndarray, options: dict[str, Any]) -> Source:
    """Return the source of a NumPy array, which must be a table of numbers."""
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise SourceError(
            f"the array has {np.ma.count_masked(data)} masked numbers: give data.filled(np.nan) to "
            "prepare(..., missing='mean')."
        )
    refuse_unless_table("the array", data.shape)
    if data.dtype.kind not in "fiub":
        raise SourceError(
            f"the array has dtype {data.dtype}: give numbers, for example by astype(float)."
        )
    return _made("arrays:ArraySource", data, {"name": "X"} | options)


def _from_list(data: Any, options: dict[str, Any]) -> Source:
    """Return the source of nested lists, of a list of arrays with rows, or of a list of paths."""
    if is_paths(data):
        return _made("concatenation:open_all", data, options)
    if len(data) and all(getattr(part, "ndim", 0) == 2 for part in data):
        return _made("iterators:IteratorSource", data, options)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise SourceError(
            f"the list is not a table of numbers ({error}): give rows of one length."
        ) from None
    return _from_array(array, options)


def _made(target: str, data: Any, options: dict[str, Any]) -> Source:
    """Call `module:name` of this folder on the data, importing it now."""
    module, name = target.split(":")
    try:
        return getattr(importlib.import_module(f"eigengame.sources.{module}"), name)(
            data, **options
        )
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing == "eigengame":
            raise
        package = PACKAGES.get(missing, missing)
        raise SourceError(f"{package} is needed to read this: pip install {package}.") from None
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise UnknownOption(f"{error}: that option does not belong to this kind of data.") from None
