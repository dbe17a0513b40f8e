"""CSV and other text tables, plain or gzipped, in chunks.

Read by Arrow's streaming reader rather than in pandas' chunks: it refuses rows that are too short, which
pandas fills up with NaN without a word, and it parses on all cores.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shlex
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from eigengame.sources import _index_columns, _text_format
from eigengame.sources._arrow import ArrowSource, Layout
from eigengame.sources._base import SourceError
from eigengame.sources._paths import paths_of, stamps
from eigengame.sources._stored_arrays import is_remote
from eigengame.sources._table_columns import choose, left_out, positions_of, shown

CHUNK = 2**20
"""Bytes of text that are parsed at once; more where a line is long."""

COUNTED = 2**24
"""Up to so many bytes of plain text the lines are counted, to know the number of rows."""


class CsvSource(ArrowSource):
    """Rows of a text table.

    Parameters
    ----------
    path : path or address
        Ends in .gz where gzipped.
    columns : sequence of names or int, or one, optional
        The features, by name or by number from 0; by default all but an index.
    header : bool or "auto"
        Whether the first line holds names. "auto" finds names that are text, and numbers such as years
        that differ clearly from the rows below. Where this is unclear, an error asks for True or False.
    delimiter : str or "auto"
        Between fields; " " for any run of blanks and tabs.
    weights : name, optional
        The column that says how often each row counts; it is no feature.
    name : str, optional
    drop : sequence of names or int, or one, optional
        Columns to leave out. Cannot be combined with `columns`.

    Notes
    -----
    A first column without a name (or called "Unnamed: 0") is the index of a data frame if it holds text,
    dates, distinct whole numbers, or numbers that only rise or fall in the first lines: it is left out
    with a `ColumnWarning`, unless `columns` names it. Other numbers there are refused: `drop` or `columns`
    decide.

    Empty fields, and NA, NaN, null and the like, become NaN. Empty lines are passed over, and so are
    lines before the table that begin with "#". Reading from a row on parses what is before it.
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
    ) -> None:
        self._path = os.fspath(path)
        if paths_of(path, (".csv", ".tsv", ".txt", ".gz")) != [self._path]:
            raise SourceError(f"{self._path} is a folder: give one file.")
        self._form = _text_format.look(self._path, header, delimiter)
        names, table = self._form.names, _text_format.columns_of(self._form)
        if names is None:
            columns, weights, drop = map(_as_numbers, (columns, weights, drop))
        labels = [column.label for column in table]
        index = []
        if columns is None:
            given = [*positions_of(drop, labels, self._path)]
            given += positions_of(weights, labels, self._path)
            index = _index_columns(self._path, self._form, labels, given)
        choice = choose(table, columns, weights, self._path, drop=drop, index=index)
        # Inside, columns go by their numbers: a name may occur twice.
        layout = Layout(
            columns=tuple(str(position) for position in choice.features),
            weights=None if choice.weights is None else str(choice.weights),
            dtype=np.dtype(np.float64),
            width=len(choice.features),
            left_out=tuple(left_out(labels, columns, weights, drop, index)),
        )
        rows = _counted(self._path, self._form.skipped)
        # Lines that are skipped tell whether the first one is a row.
        about = {"skipped": self._form.skipped, "delimiter": self._form.delimiter}
        super().__init__(
            self._read,
            layout,
            rows,
            name or self._path,
            facts=lambda: stamps([self._path]) | about,
            files=[self._path],
        )
        self.feature_names = None if names is None else [names[i] for i in choice.features]

    def _read(self, start: int, size: int) -> tuple[int, Iterator[Any]]:
        """Return the batches from the beginning on: lines do not tell where they begin."""
        return 0, self._parsed()

    def _parsed(self) -> Iterator[Any]:
        """Give the record batches of the file."""
        import pyarrow as pa
        import pyarrow.csv

        form, wanted, rows = self._form, self.layout.read, 0
        options = {
            "read_options": pa.csv.ReadOptions(
                column_names=[str(i) for i in range(form.width)],
                block_size=max(CHUNK, 16 * form.longest),
            ),
            "parse_options": pa.csv.ParseOptions(delimiter=form.delimiter),
            "convert_options": pa.csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.float64()),
                null_values=sorted(_text_format.MISSING),
            ),
        }
        try:
            with _text_format.text(self._path) as file:
                for _ in range(form.skipped):
                    file.readline()
                single = (
                    _text_format.SingleBlanks(file)
                    if form.delimiter == _text_format.SPACES
                    else file
                )
                for batch in pa.csv.open_csv(single, **options):
                    yield batch
                    rows += batch.num_rows
        except (pa.ArrowException, *_text_format.UNREADABLE) as error:
            raise SourceError(self._wrong(rows, error)) from error

    def _wrong(self, rows: int, error: BaseException) -> str:
        """Return which line cannot be read, looking for it from the last good row on."""
        positions = [int(column) for column in self.layout.read]
        with contextlib.suppress(*_text_format.UNREADABLE, csv.Error):
            for line in _text_format.lines_from(self._path, self._form, rows):
                found = _text_format.fault(self._path, self._form, line, positions)
                if found is not None:
                    return found
        return (
            f"{self._path} cannot be read beyond row {rows} ({error}): it is damaged or not whole; make it "
            "anew."
        )


def _as_numbers(columns: Any) -> Any:
    """Return columns of a table without names as numbers, also where a command line gave them as text."""
    if isinstance(columns, str):
        return int(columns) if columns.isdecimal() else columns
    return [_as_numbers(one) for one in columns] if isinstance(columns, list | tuple) else columns


def _index_columns(
    path: str, form: _text_format.Form, labels: list[Hashable], given: Sequence[int]
) -> list[int]:
    """Return the positions of index columns; refuse a first column that may be one or not.

    Parameters
    ----------
    path : str
    form : Form
    labels : list of labels
    given : sequence of int
        Columns that the user named as weights or to be left out: nothing is decided for these.
    """
    index = _index_columns.index_of_labels(labels, fractions=True)
    if 0 in given or 0 in index:
        return index
    fields = [line.fields[0] for line in form.first]
    if form.names is None:
        if _index_columns.counts_rows(fields):
            _index_columns.warn(
                f"{path}: column 0 counts the rows and is used as a feature. If it is an index, leave it "
                "out by drop=[0] (--drop 0)."
            )
        return index
    if not _index_columns.is_index_name(form.names[0]):
        return index
    if _index_columns.is_index(fields) is None:
        label = form.names[0]
        raise SourceError(
            f"{path}: the first column has no name and may be an index or a feature: leave it out by "
            f"drop=[{label!r}] (--drop {shlex.quote(label)}), or use it by columns={shown(labels)}."
        )
    return [0, *index]


def _counted(path: str, skipped: int) -> int | None:
    """Return the number of rows where it costs little: of a plain file that is not large."""
    if is_remote(path) or path.lower().endswith(".gz") or os.path.getsize(path) > COUNTED:
        return None
    with open(path, "rb") as file:
        return sum(1 for number, line in enumerate(file) if number >= skipped and line.strip())
