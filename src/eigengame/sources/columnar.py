"""Parquet and Arrow files, or folders of them, read by row groups and record batches."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from eigengame.sources._arrow import (
    ArrowLayout,
    ArrowSource,
    layout_of,
    with_list_length,
)
from eigengame.sources._arrow_errors import explain_errors, explained
from eigengame.sources._base import SourceError
from eigengame.sources._memory import check_free_memory
from eigengame.sources._paths import file_stamps, is_remote, list_files, open_binary
from eigengame.sources._table_columns import ColumnOptions


class _File(NamedTuple):
    """One file: its layout, and the rows of its pieces (row groups or record batches) if known."""

    path: str
    layout: ArrowLayout
    rows: list[int] | None


def open_parquet(
    path: str | os.PathLike[str],
    columns: Any = None,
    weights: str | None = None,
    name: str | None = None,
    drop: Any = None,
) -> ArrowSource:
    """Return the rows of a Parquet file, or of all Parquet files in a folder in sorted order.

    One row group is decoded at a time. To start at a later row, the row groups before it are not read.

    Parameters
    ----------
    path : path or address
    columns : sequence of str or int, or one, optional
        Features, by name or by number from 0. A column of lists, for example of embeddings, must be the only
        one: each list is a row. An index that pandas stored is used only if it is named here.
    weights : str, optional
        Column of sample weights.
    name : str, optional
        Defaults to the path.
    drop : sequence of str or int, or one, optional
        Columns to leave out. Cannot be combined with `columns`.

    Notes
    -----
    Page checksums are verified if the file has them.
    """
    return _open(path, _Parquet(), ColumnOptions(columns, weights, drop), name)


def open_arrow(
    path: str | os.PathLike[str],
    columns: Any = None,
    weights: str | None = None,
    name: str | None = None,
    drop: Any = None,
) -> ArrowSource:
    """Return the rows of an Arrow (Feather) file or stream, or of all of them in a folder.

    A file can be read from any record batch on. A stream is read from its beginning, and its number of rows is
    not known.

    Parameters
    ----------
    path, columns, weights, name, drop
        As in `open_parquet`.
    """
    return _open(path, _Arrow(), ColumnOptions(columns, weights, drop), name)


class _Parquet:
    """Parquet. The footer of a file has the number of rows of each row group."""

    name = "Parquet"
    endings = (".parquet", ".pq")

    def inspect(self, path: str, options: ColumnOptions) -> _File:
        """Return the layout from the footer."""
        import pyarrow.parquet as pq

        with _open_metadata(path, self.name) as handle:
            file = pq.ParquetFile(handle, page_checksum_verification=True)
            footer, schema = file.metadata, file.schema_arrow
            rows = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
            layout = layout_of(schema, options, path, nulls=False)
            if layout.dtype.itemsize > 2 or _may_have_nulls(footer, layout):
                layout = layout_of(schema, options, path)
            _check_row_groups(footer, layout, path)
            return _File(path, layout, rows)

    def read(
        self, file: _File, pieces: Sequence[int], size: int, layout: ArrowLayout
    ) -> Iterator[Any]:
        """Yield batches of at most `size` rows of some row groups, one group after the other."""
        import pyarrow.parquet as pq

        with _open_handle(file.path) as handle:
            reader = pq.ParquetFile(handle, page_checksum_verification=True)
            for group in pieces:
                yield from reader.iter_batches(size, row_groups=[group], columns=layout.needed)


class _Arrow:
    """Arrow files and streams, which differ in their first bytes."""

    name = "Arrow"
    endings = (".arrow", ".feather", ".ipc")

    def inspect(self, path: str, options: ColumnOptions) -> _File:
        """Return the layout from the schema, and the rows of each batch of a file."""
        import pyarrow as pa

        with _open_metadata(path, self.name) as handle:
            if not _is_arrow_file(handle, path):
                schema = pa.ipc.open_stream(handle).schema
                return _File(path, layout_of(schema, options, path), None)
            # Reading one column is enough to know the number of rows.
            narrow = pa.ipc.open_file(handle, options=pa.ipc.IpcReadOptions(included_fields=[0]))
            batches = (narrow.get_batch(i) for i in range(narrow.num_record_batches))
            rows = [_validated(batch).num_rows for batch in batches]
            schema = pa.ipc.open_file(handle).schema
            return _File(path, layout_of(schema, options, path), rows)

    def read(
        self, file: _File, pieces: Sequence[int], size: int, layout: ArrowLayout
    ) -> Iterator[Any]:
        """Yield slices of at most `size` rows of some batches, or of a whole stream."""
        # Not mapped: a file that shrinks while it is read would end the process.
        with _open_handle(file.path) as handle:
            for batch in map(_validated, self._batches(handle, file, pieces, layout)):
                for begin in range(0, batch.num_rows, size):
                    yield batch.slice(begin, size)

    def _batches(
        self, handle: Any, file: _File, pieces: Sequence[int], layout: ArrowLayout
    ) -> Iterator[Any]:
        import pyarrow as pa

        if file.rows is None:
            yield from pa.ipc.open_stream(handle)
            return
        positions = {one: i for i, one in enumerate(pa.ipc.open_file(handle).schema.names)}
        fields = [positions[one] for one in layout.needed]
        reader = pa.ipc.open_file(handle, options=pa.ipc.IpcReadOptions(included_fields=fields))
        for number in pieces:
            yield reader.get_batch(number)


def _validated(batch: Any) -> Any:
    """Return a record batch; raise if it states lengths or offsets that are outside its memory."""
    batch.validate(full=True)
    return batch


def _open(
    path: str | os.PathLike[str], form: _Parquet | _Arrow, options: ColumnOptions, name: str | None
) -> ArrowSource:
    """Return the source of one or more files of a format with the same columns."""
    name = name or os.fspath(path)
    files = [form.inspect(one, options) for one in list_files(path, form.endings)]
    layout = _common_layout(files)
    pieces = [(f, i, n) for f, file in enumerate(files) for i, n in enumerate(file.rows or [])]
    ends = np.cumsum([0] + [rows for _, _, rows in pieces], dtype=np.int64)
    known = all(file.rows is not None for file in files)

    def read_from(first: int, size: int) -> Iterator[Any]:
        if known:
            groups = itertools.groupby(pieces[first:], key=lambda piece: piece[0])
            wanted = ((files[f], [i for _, i, _ in group]) for f, group in groups)
        else:
            wanted = ((file, list(range(len(file.rows or [])))) for file in files)
        for file, numbers in wanted:
            stated = None if file.rows is None else sum(file.rows[i] for i in numbers)
            yield from explain_errors(form.read(file, numbers, size, layout), file.path, stated)

    def batches(start: int, size: int) -> tuple[int, Iterable[Any]]:
        first = int(np.searchsorted(ends[1:], start, side="right")) if known else 0
        return int(ends[first]), read_from(first, size)

    layout = with_list_length(layout, batches(0, 64)[1], name)
    rows = int(ends[-1]) if known else None
    paths = [file.path for file in files]
    return ArrowSource(batches, layout, rows, name, facts=lambda: file_stamps(paths), files=paths)


def _common_layout(files: Sequence[_File]) -> ArrowLayout:
    """Return the layout of all files; raise if one has other columns than the first."""
    first = files[0].layout
    for file in files[1:]:
        here = file.layout
        same = set(here.columns) == set(first.columns) and here.weights == first.weights
        widths = {first.width, here.width} - {None}
        if not same or here.lists != first.lists or len(widths) > 1:
            different = sorted(set(here.columns) ^ set(first.columns)) or list(here.columns)
            raise SourceError(
                f"{file.path} has other columns than {files[0].path} (see {different[0]!r}; "
                f"{here.width} features instead of {first.width}): give columns that all files have."
            )
    dtype = np.result_type(*[file.layout.dtype for file in files])
    omitted = dict.fromkeys(label for file in files for label in file.layout.omitted)
    return replace(first, dtype=dtype, omitted=tuple(omitted))


def _needed_columns(group: Any, layout: ArrowLayout) -> Iterator[Any]:
    """Yield the metadata of the columns of a Parquet row group that are read."""
    wanted = set(layout.needed)
    for position in range(group.num_columns):
        column = group.column(position)
        # The path of a list column continues after its name; names may contain dots too.
        if column.path_in_schema in wanted or column.path_in_schema.split(".")[0] in wanted:
            yield column


def _may_have_nulls(footer: Any, layout: ArrowLayout) -> bool:
    """Return whether a Parquet file may have missing values, from the statistics in its footer."""
    for number in range(footer.num_row_groups):
        for column in _needed_columns(footer.row_group(number), layout):
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                return True
    return False


def _check_row_groups(footer: Any, layout: ArrowLayout, path: str) -> None:
    """Raise if the largest row group of a Parquet file does not fit in memory."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    if not groups:
        return
    largest = max(groups, key=lambda group: group.total_byte_size)
    check_free_memory(
        sum(column.total_compressed_size for column in _needed_columns(largest, layout)),
        f"{path}: a row group of {largest.num_rows} rows",
        "write it with a smaller row_group_size, or choose columns",
    )


def _is_arrow_file(handle: Any, path: str) -> bool:
    """Return whether the first bytes are those of an Arrow file, not of a stream."""
    magic = handle.read(6)
    handle.seek(0)
    if magic[:4] == b"FEA1":
        raise SourceError(
            f"{path} is Feather version 1, from before 2020: write it again by pandas' to_feather."
        )
    return bool(magic == b"ARROW1")


def _open_handle(path: str) -> Any:
    """Open a file for Arrow. Arrow reads local files itself, without Python's global lock."""
    import pyarrow as pa

    return open_binary(path) if is_remote(path) else pa.OSFile(path)


@contextlib.contextmanager
def _open_metadata(path: str, kind: str) -> Iterator[Any]:
    """Open a file to read its metadata; raise a `SourceError` if it has another format."""
    with explained(f"{path} cannot be opened as {kind}"), _open_handle(path) as handle:
        yield handle
