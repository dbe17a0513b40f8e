"""Parquet and Arrow files, or folders of them: read by row groups and record batches, never whole."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from eigengame.sources._arrow import ArrowSource, Layout, guarded, layout_of, measured
from eigengame.sources._base import SourceError
from eigengame.sources._paths import opened, paths_of, stamps
from eigengame.sources._stored_arrays import is_remote
from eigengame.sources._table_columns import ColumnOptions


class _Part(NamedTuple):
    """One file: its layout, and the rows of its row groups or record batches where it tells them."""

    path: str
    layout: Layout
    rows: list[int] | None


class _Format(Protocol):
    """How files of one kind are looked into and read."""

    name: str
    endings: tuple[str, ...]

    def look(self, path: str, asked: ColumnOptions) -> _Part:
        """Return what a file says of itself, without reading its rows."""
        ...

    def read(self, part: _Part, pieces: Sequence[int], size: int, wanted: Layout) -> Iterator[Any]:
        """Give record batches of about `size` rows from some pieces of a file, or from all of a stream."""
        ...


def open_parquet(
    path: str | os.PathLike[str],
    columns: Any = None,
    weights: str | None = None,
    name: str | None = None,
    drop: Any = None,
) -> ArrowSource:
    """Return the source of a Parquet file, or of a folder of them in sorted order.

    One row group is decoded at a time, so that is the most it holds; reading from a row on begins at the
    row group that has it.

    Parameters
    ----------
    path : path or address
        Addresses such as "s3://..." are opened by fsspec.
    columns : sequence of str or int, or one, optional
        The features, by name or by number from 0. A column of lists, such as embeddings, is taken alone:
        each list is a row. An index that pandas stored is used only if it is named here.
    weights : str, optional
        The column that says how often each row counts.
    name : str, optional
    drop : sequence of str or int, or one, optional
        Columns to leave out. Cannot be combined with `columns`.

    Notes
    -----
    Page checksums are verified where the file has them.
    """
    return _source(path, _Parquet(), ColumnOptions(columns, weights, drop), name)


def open_arrow(
    path: str | os.PathLike[str],
    columns: Any = None,
    weights: str | None = None,
    name: str | None = None,
    drop: Any = None,
) -> ArrowSource:
    """Return the source of an Arrow file (also called Feather) or stream, or of a folder of them.

    A file can be read from any record batch on, and is mapped into memory where it lies on this machine;
    a stream is read from its beginning, and does not know its rows.

    Parameters
    ----------
    path, columns, weights, name, drop
        As in `open_parquet`.
    """
    return _source(path, _Arrow(), ColumnOptions(columns, weights, drop), name)


class _Parquet:
    """Parquet: its footer tells the rows of every row group."""

    name = "Parquet"
    endings: tuple[str, ...] = (".parquet", ".pq")

    def look(self, path: str, asked: ColumnOptions) -> _Part:
        """Return what the footer says."""
        import pyarrow.parquet as pq

        with _looking(path, self.name) as handle:
            file = pq.ParquetFile(handle, page_checksum_verification=True)
            about, schema = file.metadata, file.schema_arrow
            rows = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
            layout = layout_of(schema, asked, path, nulls=False)
            if layout.dtype.itemsize > 2 or _may_have_nulls(about, layout):
                layout = layout_of(schema, asked, path)
            _refuse_unless_fits(about, layout, path)
            return _Part(path, layout, rows)

    def read(self, part: _Part, pieces: Sequence[int], size: int, wanted: Layout) -> Iterator[Any]:
        """Give the batches of some row groups, one group after the other."""
        import pyarrow.parquet as pq

        with _handle(part.path) as handle:
            file = pq.ParquetFile(handle, page_checksum_verification=True)
            for group in pieces:
                yield from file.iter_batches(size, row_groups=[group], columns=wanted.read)


class _Arrow:
    """Arrow files and streams: the first bytes tell which it is."""

    name = "Arrow"
    endings: tuple[str, ...] = (".arrow", ".feather", ".ipc")

    def look(self, path: str, asked: ColumnOptions) -> _Part:
        """Return the schema, and the rows of each batch where it is a file."""
        import pyarrow as pa

        with _looking(path, self.name) as handle:
            if not _is_file(handle, path):
                schema = pa.ipc.open_stream(handle).schema
                return _Part(path, layout_of(schema, asked, path), None)
            # One column tells the rows of a batch: no other is read for it.
            narrow = pa.ipc.open_file(handle, options=pa.ipc.IpcReadOptions(included_fields=[0]))
            rows = [narrow.get_batch(i).num_rows for i in range(narrow.num_record_batches)]
            schema = pa.ipc.open_file(handle).schema
            return _Part(path, layout_of(schema, asked, path), rows)

    def read(self, part: _Part, pieces: Sequence[int], size: int, wanted: Layout) -> Iterator[Any]:
        """Give the batches, cut to `size`."""
        import pyarrow as pa

        far = is_remote(part.path)
        with opened(part.path) if far else pa.memory_map(part.path) as handle:
            for batch in self._batches(handle, part, pieces, wanted):
                for begin in range(0, batch.num_rows, size):
                    yield batch.slice(begin, size)

    def _batches(
        self, handle: Any, part: _Part, pieces: Sequence[int], wanted: Layout
    ) -> Iterator[Any]:
        import pyarrow as pa

        if part.rows is None:
            yield from pa.ipc.open_stream(handle)
            return
        places = {one: i for i, one in enumerate(pa.ipc.open_file(handle).schema.names)}
        only = pa.ipc.IpcReadOptions(included_fields=[places[one] for one in wanted.read])
        narrow = pa.ipc.open_file(handle, options=only)
        for number in pieces:
            yield narrow.get_batch(number)


def _source(
    path: str | os.PathLike[str],
    form: _Format,
    asked: ColumnOptions,
    name: str | None,
) -> ArrowSource:
    """Return the source of one or more files of a format that share their columns."""
    name = name or os.fspath(path)
    parts = [form.look(one, asked) for one in paths_of(path, form.endings)]
    layout = _joint_layout(parts)
    pieces = [(p, i, n) for p, part in enumerate(parts) for i, n in enumerate(part.rows or [])]
    ends = np.cumsum([0] + [rows for _, _, rows in pieces], dtype=np.int64)
    known = all(part.rows is not None for part in parts)

    def read_on(first: int, size: int) -> Iterator[Any]:
        if known:
            groups = itertools.groupby(pieces[first:], key=lambda piece: piece[0])
            wanted = ((parts[p], [i for _, i, _ in group]) for p, group in groups)
        else:
            wanted = ((part, list(range(len(part.rows or [])))) for part in parts)
        for part, numbers in wanted:
            yield from guarded(form.read(part, numbers, size, layout), part.path)

    def batches(start: int, size: int) -> tuple[int, Iterable[Any]]:
        first = int(np.searchsorted(ends[1:], start, side="right")) if known else 0
        return int(ends[first]), read_on(first, size)

    layout = measured(layout, batches(0, 64)[1], name)
    rows = int(ends[-1]) if known else None
    paths = [part.path for part in parts]
    return ArrowSource(batches, layout, rows, name, facts=lambda: stamps(paths), files=paths)


def _joint_layout(parts: Sequence[_Part]) -> Layout:
    """Return the layout that all files share, refusing one that has other columns than the first."""
    first = parts[0].layout
    for part in parts[1:]:
        here = part.layout
        same = set(here.columns) == set(first.columns) and here.weights == first.weights
        widths = {first.width, here.width} - {None}
        if not same or here.lists != first.lists or len(widths) > 1:
            odd = sorted(set(here.columns) ^ set(first.columns)) or list(here.columns)
            raise SourceError(
                f"{part.path} has other columns than {parts[0].path} (see {odd[0]!r}; "
                f"{here.width} features instead of {first.width}): give columns that all files have."
            )
    dtype = np.result_type(*[part.layout.dtype for part in parts])
    unnamed = dict.fromkeys(label for part in parts for label in part.layout.left_out)
    return replace(first, dtype=dtype, left_out=tuple(unnamed))


def _chosen(group: Any, layout: Layout) -> Iterator[Any]:
    """Give what the footer of a Parquet file says of the columns of a row group that are read."""
    wanted = set(layout.read)
    for position in range(group.num_columns):
        column = group.column(position)
        # A column of lists is called by its name and what lies in it; names may have dots too.
        if column.path_in_schema in wanted or column.path_in_schema.split(".")[0] in wanted:
            yield column


def _may_have_nulls(about: Any, layout: Layout) -> bool:
    """Say whether a Parquet file may miss values, from the statistics in its footer."""
    for number in range(about.num_row_groups):
        for column in _chosen(about.row_group(number), layout):
            facts = column.statistics
            if facts is None or not facts.has_null_count or facts.null_count:
                return True
    return False


def _refuse_unless_fits(about: Any, layout: Layout, path: str) -> None:
    """Refuse a Parquet file of which one row group does not fit in memory."""
    from eigengame._system.memory import free_memory

    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    largest = max(groups, key=lambda group: group.total_byte_size, default=None)
    if largest is None:
        return
    there = free_memory()
    needed = sum(column.total_compressed_size for column in _chosen(largest, layout))
    if there is not None and needed > there:
        raise SourceError(
            f"{path}: a row group of {largest.num_rows} rows takes {needed / 2**30:.3g} GiB, but "
            f"{there / 2**30:.3g} GiB is free: write it anew with a smaller row_group_size, or choose columns."
        )


def _is_file(handle: Any, path: str) -> bool:
    """Say whether Arrow's first bytes are those of a file, not of a stream."""
    magic = handle.read(6)
    handle.seek(0)
    if magic[:4] == b"FEA1":
        raise SourceError(
            f"{path} is Feather version 1, of before 2020: write it anew by pandas' to_feather."
        )
    return bool(magic == b"ARROW1")


def _handle(path: str) -> Any:
    """Return a file that Arrow reads: its own kind here, which needs no lock of Python, or fsspec's."""
    import pyarrow as pa

    return opened(path) if is_remote(path) else pa.OSFile(path)


@contextlib.contextmanager
def _looking(path: str, kind: str) -> Iterator[Any]:
    """Open a file to look into it; say so where it is not of its kind."""
    import pyarrow as pa

    try:
        with _handle(path) as handle:
            yield handle
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"{path} cannot be opened as {kind} ({str(error).splitlines()[0]}): it is of another kind, "
            "damaged, or not whole."
        ) from error
