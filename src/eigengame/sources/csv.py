"""CSV and other text tables, plain or gzipped, parsed in chunks by Arrow.

Arrow refuses rows that are too short, which pandas silently fills with NaN, and it parses on all cores.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shlex
from collections.abc import Generator, Hashable, Sequence
from typing import Any

import numpy as np

from eigengame._system.closing_at_exit import closed_at_exit, released_before_exit
from eigengame.sources import _index_columns, _table_columns, _text_format
from eigengame.sources._arrow import ArrowLayout, ArrowSource
from eigengame.sources._base import SourceError
from eigengame.sources._memory import MAX_ITEM, limit_of
from eigengame.sources._paths import file_stamps, is_remote, list_files
from eigengame.sources._table_columns import ColumnOptions
from eigengame.sources._text_blanks import CollapsedBlanks
from eigengame.sources._text_fields import MISSING
from eigengame.sources._text_format import TextFormat

CHUNK = 2**20
"""Bytes of text that are parsed at once, or more if lines are long."""

MAX_CHUNK = 2**26
"""Bytes above which at most two lines are parsed at once."""

MAX_COUNTED = 2**24
"""Lines of plain files of at most this size are counted when they are opened."""


class CsvSource(ArrowSource):
    """Rows of a text table.

    Parameters
    ----------
    path : path or address
        Decompressed if the name ends in .gz.
    columns : sequence of names or int, or one, optional
        Features, by name or by number from 0. Defaults to all columns but an index.
    header : bool or "auto"
        Whether the first line holds names. "auto" detects names that are text, and numbers, for example
        years, that differ clearly from the rows below. If it is unclear, an error asks for True or False.
    delimiter : str or "auto"
        Delimiter of the fields; " " means any run of blanks and tabs.
    weights : name or int, optional
        Column of sample weights. It is not a feature.
    name : str, optional
        Defaults to the path.
    drop : sequence of names or int, or one, optional
        Columns to leave out. Cannot be combined with `columns`.
    max_bytes : int, optional
        Largest memory for one line and its fields. Defaults to 256 MiB, about 4 million columns.

    Notes
    -----
    A first column without a name (or called "Unnamed: 0") is an index if it holds text, dates, distinct
    integers, or numbers that only rise or fall in the first lines. It is left out with a `ColumnWarning`,
    unless `columns` names it. With other numbers it raises: give `drop` or `columns`.

    Empty fields, NA, NaN, null and similar become NaN. Empty lines, and lines before the table that begin
    with "#", are skipped. To start at a later row, the rows before it are parsed too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Any = None,
        header: bool | str = "auto",
        delimiter: str = "auto",
        weights: Any = None,
        name: str | None = None,
        drop: Any = None,
        max_bytes: int | None = None,
    ) -> None:
        self._path, self._limit = os.fspath(path), limit_of(max_bytes, MAX_ITEM)
        if list_files(path, (".csv", ".tsv", ".txt", ".gz")) != [self._path]:
            raise SourceError(f"{self._path} is a folder: give one file.")
        self._format = _text_format.detect_format(self._path, header, delimiter, self._limit)
        names, table = self._format.names, _text_format.describe_columns(self._format)
        options = ColumnOptions(columns, weights, drop)
        if names is None:
            options = ColumnOptions(*map(_to_numbers, options))
        labels = [column.label for column in table]
        index = []
        if columns is None:
            named = _table_columns.column_positions(options.drop, labels, self._path)
            named += _table_columns.column_positions(options.weights, labels, self._path)
            index = _find_index(self._path, self._format, labels, named)
        choice = _table_columns.choose_columns(table, options, self._path, index)
        # Columns are identified by number, because a name may occur twice.
        layout = ArrowLayout(
            columns=tuple(str(position) for position in choice.features),
            weights=None if choice.weights is None else str(choice.weights),
            dtype=np.dtype(np.float64),
            width=len(choice.features),
            omitted=tuple(_table_columns.omitted_index(labels, options, index)),
        )
        rows = _count_rows(self._path, self._format.skipped)
        # `skipped` tells whether the first line is a header or a row.
        about = {"skipped": self._format.skipped, "delimiter": self._format.delimiter}
        super().__init__(
            lambda start, size: (0, closed_at_exit(self._parse())),
            layout,
            rows,
            name or self._path,
            facts=lambda: file_stamps([self._path]) | about,
            files=[self._path],
        )
        self.feature_names = None if names is None else [names[i] for i in choice.features]

    def _parse(self) -> Generator[Any, None, None]:
        """Yield the record batches of the file."""
        import pyarrow as pa
        import pyarrow.csv

        form, needed, rows = self._format, self.layout.needed, 0
        options = {
            "read_options": pa.csv.ReadOptions(
                column_names=[str(i) for i in range(form.width)],
                block_size=_block_size(form.longest),
            ),
            "parse_options": pa.csv.ParseOptions(delimiter=form.delimiter),
            "convert_options": pa.csv.ConvertOptions(
                include_columns=needed,
                column_types=dict.fromkeys(needed, pa.float64()),
                null_values=sorted(MISSING),
            ),
        }
        blanks = form.delimiter == _text_format.BLANKS
        try:
            with _text_format.open_text(self._path) as file:
                for _ in range(form.skipped):
                    file.readline()
                text = CollapsedBlanks(file, self._path, self._limit) if blanks else file
                with pa.csv.open_csv(released_before_exit(text), **options) as batches:
                    for batch in batches:
                        yield batch
                        rows += batch.num_rows
        except (pa.ArrowException, *_text_format.UNREADABLE) as error:
            raise SourceError(self._explain(rows, error)) from error

    def _explain(self, rows: int, error: BaseException) -> str:
        """Return a message that names the first faulty line after `rows` good rows."""
        positions = [int(column) for column in self.layout.needed]
        with contextlib.suppress(*_text_format.UNREADABLE, csv.Error):
            for line in _text_format.read_lines(self._path, self._format, rows, self._limit):
                found = _text_format.find_fault(self._path, self._format, line, positions)
                if found is not None:
                    return found
        return (
            f"{self._path} cannot be read beyond row {rows} ({error}): it is damaged or incomplete; write it "
            "again."
        )


def _block_size(longest: int) -> int:
    """Return the bytes of text to parse at once: 16 lines, or 2 if they are long."""
    return min(max(CHUNK, min(16 * longest, max(2 * longest, MAX_CHUNK))), 2**31 - 1)


def _to_numbers(columns: Any) -> Any:
    """Return columns of a table without names as numbers; a command line gives them as text."""
    if isinstance(columns, str):
        return int(columns) if columns.isdecimal() else columns
    return [_to_numbers(one) for one in columns] if isinstance(columns, list | tuple) else columns


def _find_index(
    path: str, form: TextFormat, labels: list[Hashable], named: Sequence[int]
) -> list[int]:
    """Return the positions of index columns; raise if the first column may or may not be one.

    Parameters
    ----------
    path : str
    form : TextFormat
    labels : list of labels
    named : sequence of int
        Columns that the user named as weights or to be dropped. Nothing is decided for these.
    """
    index = _index_columns.index_positions(labels, fractions=True)
    if 0 in named or 0 in index:
        return index
    fields = [line.fields[0] for line in form.sample]
    if form.names is None:
        if _index_columns.counts_rows(fields):
            _index_columns.warn(
                f"{path}: column 0 counts the rows and is used as a feature. If it is an index, leave it "
                "out by drop=[0] (--drop 0)."
            )
        return index
    if not _index_columns.is_unnamed(form.names[0]):
        return index
    if _index_columns.is_index(fields) is None:
        label = form.names[0]
        columns = _table_columns.format_labels(labels)
        raise SourceError(
            f"{path}: the first column has no name and may be an index or a feature: leave it out by "
            f"drop=[{label!r}] (--drop {shlex.quote(label)}), or use it by columns={columns}."
        )
    return [0, *index]


def _count_rows(path: str, skipped: int) -> int | None:
    """Return the number of rows of a small plain file; None for other files."""
    if is_remote(path) or path.lower().endswith(".gz") or os.path.getsize(path) > MAX_COUNTED:
        return None
    with open(path, "rb") as file:
        return sum(1 for number, line in enumerate(file) if number >= skipped and line.strip())
