"""Data frames and tables of pandas, polars and pyarrow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from eigengame.sources._arrow import ArrowSource, layout_of, with_list_length
from eigengame.sources._arrow_errors import explain_errors
from eigengame.sources._base import Block, RandomAccess, Source, SourceError
from eigengame.sources._digest import digest_of_blocks
from eigengame.sources._index_columns import index_positions, warn_omitted
from eigengame.sources._table_columns import (
    Column,
    ColumnOptions,
    check_weights,
    choose_columns,
    describe_labels,
    digest_of_sample,
    nan_dtype,
    omitted_index,
)
from eigengame.sources.iterators import IteratorSource

if TYPE_CHECKING:
    import pandas as pd


def from_frame(
    data: Any,
    columns: Any = None,
    weights: Any = None,
    name: str | None = None,
    drop: Any = None,
) -> Source:
    """Return the rows of a data frame, of a table, or of a stream of record batches.

    Parameters
    ----------
    data : DataFrame, LazyFrame, Table, RecordBatch or RecordBatchReader
        Of pandas, polars or pyarrow. A LazyFrame is collected in streaming batches in each pass. A
        RecordBatchReader can be read once.
    columns : sequence of labels, or one, optional
        Features, in this order. Defaults to all columns but an index that pandas stored. With polars and
        pyarrow, a column of lists must be the only one: each list is a row. If all labels are text, columns
        can also be given by number from 0.
    weights : label, optional
        Column of sample weights. It is not a feature.
    name : str, optional
    drop : sequence of labels, or one, optional
        Columns to leave out. Cannot be combined with `columns`.
    """
    options = ColumnOptions(columns, weights, drop)
    libraries = {kind.__module__.split(".")[0] for kind in type(data).__mro__}
    name = name or _frame_name(data)
    source: Source | None = None
    if "pandas" in libraries:
        source = _from_pandas(data, options, name)
    elif "polars" in libraries:
        source = _from_polars(data, options, name)
    elif "pyarrow" in libraries:
        source = _from_arrow(data, options, name)
    if source is None:
        raise SourceError(
            f"a {name} is not a table: give a DataFrame, a Table, or a stream of record batches."
        )
    return source


class PandasSource(RandomAccess):
    """Rows of a pandas data frame. Each block is converted when it is read.

    Parameters
    ----------
    data : DataFrame
    options : ColumnOptions
    name : str
    """

    def __init__(self, data: pd.DataFrame, options: ColumnOptions, name: str) -> None:
        table = [_pandas_column(label, kind) for label, kind in data.dtypes.items()]
        labels = [column.label for column in table]
        index = index_positions(labels, fractions=_starts_with_fractions(data))
        choice = choose_columns(table, options, name, index)
        if not len(data):
            raise SourceError(f"{name} has columns but no rows.")
        warn_omitted(name, omitted_index(labels, options, index))
        self._data, self._choice, self._weights = data, choice, options.weights
        self._labels = [table[position].label for position in choice.features]
        self._all = choice.features == list(range(data.shape[1]))
        self.name = name
        self.shape, self.dtype = (len(data), len(self._labels)), choice.dtype
        if all(isinstance(label, str) for label in self._labels):
            self.feature_names = [str(label) for label in self._labels]

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`. Missing values are NaN."""
        rows = self._data.iloc[begin:end]
        chosen = rows if self._all else rows.iloc[:, self._choice.features]
        if self.dtype.kind == "f":
            return chosen.to_numpy(dtype=self.dtype, na_value=np.nan)
        return chosen.to_numpy(dtype=self.dtype)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        for block in super().blocks(start, size):
            yield Block(block.values, self._read_weights(start, start + len(block)))
            start += len(block)

    def _read_weights(self, begin: int, end: int) -> np.ndarray | None:
        if self._choice.weights is None:
            return None
        column = self._data.iloc[begin:end, self._choice.weights]
        weights = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return check_weights(weights, self.name, begin)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, columns and a digest of a few rows."""
        about = {"columns": describe_labels(self._labels), "rows": digest_of_sample(self)}
        if self._weights is not None:
            about["weights"] = str(self._weights)
        return super().fingerprint() | about

    def digest(self) -> str | None:
        """Return a digest of all rows and weights."""
        return digest_of_blocks(self)


def without_index(data: Any) -> Any:
    """Return a pandas or polars data frame without index columns, which are recognised by name."""
    labels = list(data.columns)
    index = index_positions(labels, fractions=_starts_with_fractions(data))
    if not index:
        return data
    warn_omitted(_frame_name(data), [labels[i] for i in index])
    kept = [i for i in range(len(labels)) if i not in index]
    return data.iloc[:, kept] if hasattr(data, "iloc") else data[:, kept]


def _frame_name(data: Any) -> str:
    return f"{type(data).__module__.split('.')[0]} {type(data).__name__}"


def _starts_with_fractions(data: Any) -> bool:
    """Return whether the first column of a pandas or polars data frame holds fractions."""
    kinds = list(data.dtypes)
    return bool(kinds) and str(kinds[0]).lower().startswith(("float", "decimal", "double"))


def _pandas_column(label: Any, kind: Any) -> Column:
    """Return the description of a pandas column. Extension types may have missing values."""
    extension = not isinstance(kind, np.dtype)
    plain = getattr(kind, "numpy_dtype", getattr(kind, "subtype", None)) if extension else kind
    if not isinstance(plain, np.dtype) or plain.kind not in "fiub":
        return Column(label, str(kind), None)
    plain = np.dtype(np.uint8) if plain.kind == "b" else plain
    return Column(label, str(kind), nan_dtype(plain) if extension else plain)


def _from_pandas(data: Any, options: ColumnOptions, name: str) -> Source | None:
    if hasattr(data, "dtypes") and hasattr(data, "columns"):
        return PandasSource(data, options, name)
    if not isinstance(data, Iterator):
        return None
    if any(one is not None for one in options):
        raise SourceError(
            f"{name} yields chunks, whose columns cannot be chosen here: choose them in read_csv(usecols=...), "
            "or give the path."
        )
    return IteratorSource(data, name)


def _from_polars(data: Any, options: ColumnOptions, name: str) -> Source | None:
    if hasattr(data, "collect_schema") and not hasattr(data, "shape"):
        return _from_query(data, options, name)
    if not (hasattr(data, "to_arrow") and hasattr(data, "columns")):
        return None
    layout = layout_of(data.clear().to_arrow().schema, options, name)
    warn_omitted(name, layout.omitted)
    # Only the needed columns are converted, because Arrow would copy text.
    chosen = ColumnOptions(list(layout.columns), layout.weights)
    return _from_table(data.select(layout.needed).to_arrow(), chosen, name)


def _from_arrow(data: Any, options: ColumnOptions, name: str) -> Source | None:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return _from_table(data, options, name)
    if isinstance(data, pa.RecordBatchReader):
        return _from_reader(data, options, name)
    return None


def _from_query(data: Any, options: ColumnOptions, name: str) -> Source:
    """Return the rows of a polars query, which runs again in each pass."""
    import polars as pl

    if not hasattr(data, "collect_batches"):
        raise SourceError(
            f"{name}: this version of polars cannot collect a query in batches: pip install -U polars, or "
            "call collect()."
        )
    try:
        schema = pl.DataFrame(schema=data.collect_schema()).to_arrow().schema
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{name}: the query cannot be run: {error}") from error
    layout = layout_of(schema, options, name)
    query = data.select(layout.needed)
    if layout.width is None:
        one = query.drop_nulls(layout.columns[0]).limit(1)
        layout = with_list_length(layout, _collect(one, 1, name), name)

    def batches(start: int, size: int) -> tuple[int, Iterator[Any]]:
        return start, _collect(query.slice(start), size, name)

    plan = {"query": describe_labels([data.explain(optimized=False)])}
    return ArrowSource(batches, layout, None, name, facts=lambda: plan)


def _collect(query: Any, size: int, name: str) -> Iterator[Any]:
    """Yield the record batches of a polars query."""
    import polars as pl

    try:
        for frame in query.collect_batches(chunk_size=size, maintain_order=True, lazy=True):
            yield from frame.to_arrow().to_batches()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{name}: the query failed: {error}") from error


def _from_table(data: Any, options: ColumnOptions, name: str) -> Source:
    """Return the rows of an Arrow table, which is sliced without a copy."""
    if not data.num_rows:
        raise SourceError(f"{name} has columns but no rows.")
    layout = layout_of(data.schema, options, name, nulls=False)
    table = data.select(layout.needed)
    if any(_has_nulls(table.column(one)) for one in layout.columns):
        layout = layout_of(data.schema, options, name)

    def batches(start: int, size: int) -> tuple[int, Iterator[Any]]:
        rows = range(start, table.num_rows, size)
        return start, (part for row in rows for part in table.slice(row, size).to_batches())

    layout = with_list_length(layout, batches(0, 64)[1], name)
    source = ArrowSource(
        batches, layout, table.num_rows, name, facts=lambda: {"rows": digest_of_sample(source)}
    )
    return source


def _has_nulls(column: Any) -> bool:
    """Return whether a column, or one of its lists, has missing values."""
    import pyarrow.types as types

    if column.null_count or not types.is_nested(column.type):
        return bool(column.null_count)
    return any(chunk.flatten().null_count for chunk in column.chunks)


def _from_reader(data: Any, options: ColumnOptions, name: str) -> Source:
    """Return the rows of a stream of record batches, which can be read once."""
    layout = layout_of(data.schema, options, name)
    stream, seen, started = explain_errors(data, name), [], False

    def first_batches() -> Iterator[Any]:
        for batch in stream:
            seen.append(batch)
            yield batch

    def batches(start: int, size: int) -> tuple[int, Iterator[Any]]:
        nonlocal started
        if started:
            raise SourceError(
                f"{name} can be read once, and was read already: give a Table or a path."
            )
        started = True
        return 0, itertools.chain(seen, stream)

    layout = with_list_length(layout, first_batches(), name)
    return ArrowSource(batches, layout, None, name, again=False)
