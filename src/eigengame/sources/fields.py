"""Fields: xarray objects and netCDF files, read by blocks of their sample dimension.

A row is one sample, such as one time. Its features are the points of the grid, in C order of the other dimensions;
those of several variables follow each other. Points without data, such as land, are NaN here: `prepare` leaves them
out (`eigengame.preparation.grid_cells`).
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eigengame._system.extras import install_command
from eigengame.sources._base import Block, RandomAccess, SourceError, list_items, one_line, rechunk
from eigengame.sources._chunked_array import MAX_SPAN_BYTES, chunk_spans
from eigengame.sources._field_labels import (
    as_dataset,
    feature_dims,
    grid_of,
    import_xarray,
    sample_dims,
    sample_labels,
)
from eigengame.sources._field_weights import field_weights
from eigengame.sources._file_source import FileSource
from eigengame.sources._paths import is_remote
from eigengame.sources._stored_arrays import NUMBERS, ArrayInfo, choose_array, to_native


class FieldSource(FileSource, RandomAccess):
    """Rows of an xarray Dataset.

    Numbers in memory, in a file that xarray opened, or in Dask chunks are read for each block. Dask computes the
    chunks of a block by its default scheduler.

    Parameters
    ----------
    dataset : xarray.Dataset
        Its variables are the features. All have the sample dimensions.
    dims : sequence of str
        Sample dimensions. Rows are in C order of these.
    name : str
    path : str, optional
        File of the dataset.
    """

    def __init__(
        self, dataset: Any, dims: Sequence[str], name: str, path: str | None = None
    ) -> None:
        self.dataset, self.dims, self.name, self.path = dataset, tuple(dims), name, path
        self._computing: dict[str, str] = {}
        self.key = ",".join(map(str, dataset.data_vars))
        for one in dataset.data_vars.values():
            _check_variable(name, one, self.dims)
        self.sizes = tuple(int(dataset.sizes[dim]) for dim in self.dims)
        self.grid = grid_of(dataset, self.dims)
        self.shape = (math.prod(self.sizes), self.grid.size)
        for length, what in zip(self.shape, ("rows", "features"), strict=True):
            if not length:
                raise SourceError(f"{name} has no {what}: its sizes are {dict(dataset.sizes)}.")
        dtypes = [np.dtype(one.dtype).newbyteorder("=") for one in dataset.data_vars.values()]
        self.dtype = np.result_type(*dtypes)
        self.image_shape, self.coordinates = self.grid.image_shape(), self.grid.map_axes()
        most = max(MAX_SPAN_BYTES // (self.shape[1] * self.dtype.itemsize), 1)
        self.chunk = min(self._stored_chunk(), most)

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`."""
        pieces = [self._piece(place) for place in _spans(begin, end, self.sizes)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows, cut from spans of whole chunks."""
        rows = self.shape[0]
        assert rows is not None
        spans = chunk_spans(start, rows, size, self.chunk)
        yield from rechunk((Block(self.read(*span)) for span in spans), 0, size)

    def _piece(self, place: tuple[slice, ...]) -> np.ndarray:
        """Return the rows of a rectangle of the sample dimensions."""
        indices = dict(zip(self.dims, place, strict=True))
        found = []
        for one in self.dataset.data_vars.values():
            # Transposed after reading: a lazy transposition reads value by value.
            order = (*self.dims, *feature_dims(one, self.dims))
            cut = one.variable.isel(indices)
            try:
                values = np.asarray(cut.compute(**self._computing).values)
            except MemoryError:
                raise
            except Exception as error:  # codecs, files and graphs raise errors of any type
                raise SourceError(
                    f"{self.name}: {one.name} cannot be read at {_place(indices)} ({one_line(error)}): the file "
                    "is damaged or was closed, or a computation of Dask failed."
                ) from error
            values = values.transpose([cut.dims.index(dim) for dim in order])
            rows = math.prod(values.shape[: len(self.dims)])
            found.append(to_native(values.reshape(rows, -1)))
        return found[0] if len(found) == 1 else np.hstack(found).astype(self.dtype, copy=False)

    def _stored_chunk(self) -> int:
        """Return the number of rows in a chunk of the first variable."""
        one = next(iter(self.dataset.data_vars.values()))
        chunks = one.variable.chunksizes or one.encoding.get("preferred_chunks") or {}
        # Chunks of several sample dimensions are boxes; runs of the last dimension are read at once.
        last = chunks.get(self.dims[-1], 1)
        return int(max(last)) if isinstance(last, tuple) else int(last)

    def for_worker(self) -> FieldSource:
        """Return the same rows, with chunks that Dask computes in the thread that reads them.

        A task that waits for other tasks of its worker can wait forever.
        """
        found = copy.copy(self)
        found._computing = {"scheduler": "synchronous"}
        return found

    def describe_feature(self, column: int) -> str:
        """Return the variable and the coordinates of a feature."""
        assert self.grid is not None
        return self.grid.describe(column)

    def row_ids(self) -> list[str] | None:
        """Return the label of each row: its coordinates along the sample dimensions."""
        columns = list(self.id_columns().values())
        if not columns:
            return None
        return [" ".join(labels) for labels in zip(*columns, strict=True)]

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the coordinates of each row along the sample dimensions that have coordinates."""
        return sample_labels(self.dataset, self.dims)

    def cell_weights(self, weights: Any) -> np.ndarray:
        """Return one weight for each feature, shape (d,); see `field_weights`."""
        return field_weights(self.dataset, self.dims, weights)


def from_xarray(data: Any, dim: Any = None, name: str | None = None) -> FieldSource:
    """Return the rows of an xarray DataArray or Dataset.

    Parameters
    ----------
    data : DataArray or Dataset
        In memory, opened lazily from a file, or with Dask chunks, which may also split features. Values that
        attributes mark as missing (`_FillValue`, `missing_value`) become NaN, and packed values are unpacked.
    dim : str or sequence of str, optional
        Sample dimensions. By default the time, or the first of two dimensions.
    name : str, optional
    """
    dataset = as_dataset(data)
    given = getattr(data, "name", None)
    return FieldSource(dataset, sample_dims(dataset, dim), name or str(given or "field"))


def open_netcdf(
    path: str | os.PathLike[str],
    variable: str | Sequence[str] | None = None,
    dim: Any = None,
    name: str | None = None,
) -> FieldSource:
    """Return the rows of one or several variables of a netCDF file, classic or based on HDF5.

    Parameters
    ----------
    path : path
    variable : str or sequence of str, optional
        Variables, with the path of their group: "ocean/sst". Not needed if only one has samples and features.
    dim : str or sequence of str, optional
        Sample dimensions. By default the time, or the first of two dimensions.
    name : str, optional
        Defaults to the path.
    """
    found = os.fspath(path)
    if is_remote(found):
        raise SourceError(
            f"{found}: netCDF is read from local files. Download it, or open it by xarray and give the DataArray."
        )
    wanted = [variable] if isinstance(variable, str) else list(variable or ())
    groups = {one.strip("/").rpartition("/")[0] for one in wanted}
    if len(groups) > 1:
        raise SourceError(
            f"variable={variable!r}: give variables of one group, not of {list_items(groups)}."
        )
    dataset = _open(found, next(iter(groups), "") or None)
    tables = {
        str(key): ArrayInfo(tuple(one.shape), np.dtype(one.dtype))
        for key, one in dataset.data_vars.items()
        if wanted or key not in _bounds(dataset)
    }
    keys: list[str | None] = [one.strip("/").rpartition("/")[2] for one in wanted] or [None]
    chosen = [choose_array(found, tables, key, option="variable") for key in keys]
    label = f"{name or found}:{','.join(chosen)}"
    dataset = as_dataset(dataset[chosen])
    return FieldSource(dataset, sample_dims(dataset, dim), label, path=found)


def _bounds(dataset: Any) -> set[str]:
    """Return the variables that are bounds of others (CF conventions), which are not data."""
    about = [{**one.encoding, **one.attrs} for one in dataset.variables.values()]
    return {str(one["bounds"]) for one in about if "bounds" in one}


def _open(path: str, group: str | None) -> Any:
    """Return the dataset of a file. Values stay in the file until they are read."""
    xarray = import_xarray()
    options: dict[str, Any] = (
        {"cache": False} if group is None else {"cache": False, "group": group}
    )
    try:
        try:
            return xarray.open_dataset(path, **options)
        except (ValueError, OverflowError, ImportError):
            # Times of an unknown calendar; as numbers they still order the rows.
            return xarray.open_dataset(path, decode_times=False, **options)
    except MemoryError:
        raise
    except Exception as error:  # each backend raises errors of its own
        raise SourceError(
            f"{path} cannot be opened as netCDF ({one_line(error)}): check that it is complete"
            f"{'' if group is None else f' and has a group {group!r}'}. Files based on HDF5 need h5netcdf: "
            f"{install_command('h5netcdf')}."
        ) from None


def _check_variable(name: str, one: Any, dims: Sequence[str]) -> None:
    """Raise if a variable has no numbers, or lacks a sample dimension."""
    if np.dtype(one.dtype).kind == "c":
        raise SourceError(
            f"{name} has complex numbers ({one.dtype}): use eigengame.xarray.fit, which finds complex components."
        )
    if np.dtype(one.dtype).kind not in NUMBERS:
        raise SourceError(f"{name}: {one.name} has dtype {one.dtype}: numbers are needed.")
    absent = [dim for dim in dims if dim not in one.dims]
    if absent:
        raise SourceError(
            f"{name}: {one.name} has no dimension {list_items(absent)}, only {list_items(one.dims)}: give "
            "variables that have all sample dimensions."
        )


def _place(indices: dict[str, slice]) -> str:
    """Return slices of dimensions as text."""
    return ", ".join(f"{dim} {cut.start} to {cut.stop}" for dim, cut in indices.items())


def _spans(begin: int, end: int, sizes: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield rectangles that contain the rows `begin` to `end` of sample dimensions of these sizes, in order."""
    if len(sizes) == 1:
        yield (slice(begin, end),)
        return
    inner = math.prod(sizes[1:])
    whole = tuple(slice(0, length) for length in sizes[1:])
    while begin < end:
        outer, offset = divmod(begin, inner)
        full = (end - begin) // inner
        if offset == 0 and full:
            yield (slice(outer, outer + full), *whole)
            begin += full * inner
            continue
        stop = min(end - outer * inner, inner)
        for cut in _spans(offset, stop, sizes[1:]):
            yield (slice(outer, outer + 1), *cut)
        begin = outer * inner + stop
