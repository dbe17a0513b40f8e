"""Data frames: pandas, polars and Arrow tables, by their numeric columns.

pandas is read as it is; polars lends its columns to Arrow without a copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from eigengame.sources._arrow import ArrowSource, guarded, layout_of, measured
from eigengame.sources._base import Block, RandomAccess, Source, SourceError
from eigengame.sources._digest import digest_of_blocks
from eigengame.sources._index_columns import index_of_labels, warn_left_out
from eigengame.sources._table_columns import (
    Column,
    ColumnOptions,
    checked_weights,
    choose,
    described,
    digest_of_rows,
    left_out,
    with_room_for_missing,
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
    """Return the source of a data frame, or of a stream of Arrow batches.

    Parameters
    ----------
    data : DataFrame, LazyFrame, Table, RecordBatch or RecordBatchReader
        Of pandas, polars or pyarrow. A LazyFrame is collected in streaming batches, anew in each pass; a
        RecordBatchReader can be read once.
    columns : sequence of labels, or one, optional
        The features, in this order; by default all but an index that pandas stored. With polars and
        pyarrow a column of lists is taken alone: each list is a row. Where all labels are text, columns
        can also be given by number from 0.
    weights : label, optional
        The column that says how often each row counts; it is no feature.
    name : str, optional
    drop : sequence of labels, or one, optional
        Columns to leave out. Cannot be combined with `columns`.
    """
    asked = ColumnOptions(columns, weights, drop)
    libraries = {kind.__module__.split(".")[0] for kind in type(data).__mro__}
    name = name or f"{type(data).__module__.split('.')[0]} {type(data).__name__}"
    made: Source | None = None
    if "pandas" in libraries:
        made = _from_pandas(data, asked, name)
    elif "polars" in libraries:
        made = _from_polars(data, asked, name)
    elif "pyarrow" in libraries:
        made = _from_arrow(data, asked, name)
    if made is None:
        raise SourceError(
            f"a {name} is no table: give a DataFrame, a Table, or a stream of record batches."
        )
    return made


class PandasSource(RandomAccess):
    """Rows of a pandas data frame: a block is converted when it is asked for.

    Parameters
    ----------
    data : DataFrame
    columns, weights, name, drop
        As in `from_frame`.
    """

    def __init__(
        self,
        data: pd.DataFrame,
        columns: Any = None,
        weights: Any = None,
        name: str = "frame",
        drop: Any = None,
    ) -> None:
        table = [_pandas_column(label, kind) for label, kind in data.dtypes.items()]
        labels = [column.label for column in table]
        index = index_of_labels(labels, fractions=_fractions(data))
        choice = choose(table, columns, weights, name, drop=drop, index=index)
        if not len(data):
            raise SourceError(f"{name} has columns but no rows.")
        warn_left_out(name, left_out(labels, columns, weights, drop, index))
        self._data, self._choice, self._weights = data, choice, weights
        self._labels = [table[position].label for position in choice.features]
        self._all = choice.features == list(range(data.shape[1]))
        self.name = name
        self.shape, self.dtype = (len(data), len(self._labels)), choice.dtype
        if all(isinstance(label, str) for label in self._labels):
            self.feature_names = [str(label) for label in self._labels]

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`; missing values are NaN."""
        rows = self._data.iloc[begin:end]
        chosen = rows if self._all else rows.iloc[:, self._choice.features]
        if self.dtype.kind == "f":
            return chosen.to_numpy(dtype=self.dtype, na_value=np.nan)
        return chosen.to_numpy(dtype=self.dtype)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`."""
        for block in super().blocks(start, size):
            yield Block(block.values, self._weights_of(start, start + len(block)))
            start += len(block)

    def _weights_of(self, begin: int, end: int) -> np.ndarray | None:
        if self._choice.weights is None:
            return None
        column = self._data.iloc[begin:end, self._choice.weights]
        weights = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return checked_weights(weights, self.name, begin)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, columns and a digest of a few rows."""
        about = {"columns": described(self._labels), "rows": digest_of_rows(self)}
        if self._weights is not None:
            about["weights"] = str(self._weights)
        return super().fingerprint() | about

    def digest(self) -> str | None:
        """Return a digest of all rows and weights."""
        return digest_of_blocks(self)


def without_index(data: Any) -> Any:
    """Return a data frame of pandas or polars without columns whose names only an index has."""
    labels = list(data.columns)
    index = index_of_labels(labels, fractions=_fractions(data))
    if not index:
        return data
    name = f"{type(data).__module__.split('.')[0]} {type(data).__name__}"
    warn_left_out(name, [labels[i] for i in index])
    kept = [i for i in range(len(labels)) if i not in index]
    return data.iloc[:, kept] if hasattr(data, "iloc") else data[:, kept]


def _fractions(data: Any) -> bool:
    """Return whether the first column of a data frame of pandas or polars holds fractions."""
    kinds = list(data.dtypes)
    return bool(kinds) and str(kinds[0]).lower().startswith(("float", "decimal", "double"))


def _pandas_column(label: Any, kind: Any) -> Column:
    """Return what pandas says of a column; those of its own types may miss values."""
    own = not isinstance(kind, np.dtype)
    plain = getattr(kind, "numpy_dtype", getattr(kind, "subtype", None)) if own else kind
    if not isinstance(plain, np.dtype) or plain.kind not in "fiub":
        return Column(label, str(kind), None)
    plain = np.dtype(np.uint8) if plain.kind == "b" else plain
    return Column(label, str(kind), with_room_for_missing(plain) if own else plain)


def _from_pandas(data: Any, asked: ColumnOptions, name: str) -> Source | None:
    if hasattr(data, "dtypes") and hasattr(data, "columns"):
        return PandasSource(data, asked.columns, asked.weights, name, asked.drop)
    if not isinstance(data, Iterator):
        return None
    if any(one is not None for one in asked):
        raise SourceError(
            f"{name} gives chunks, of which no columns can be chosen: choose them where it is made, for "
            "example by read_csv(usecols=...), or give the path."
        )
    return IteratorSource(data, name)


def _from_polars(data: Any, asked: ColumnOptions, name: str) -> Source | None:
    if hasattr(data, "collect_schema") and not hasattr(data, "shape"):
        return _from_query(data, asked, name)
    if not (hasattr(data, "to_arrow") and hasattr(data, "columns")):
        return None
    wanted = layout_of(data.clear().to_arrow().schema, asked, name)
    warn_left_out(name, wanted.left_out)
    # Only what is needed is handed to Arrow: text would be copied.
    chosen = ColumnOptions(list(wanted.columns), wanted.weights, None)
    return _from_table(data.select(wanted.read).to_arrow(), chosen, name)


def _from_arrow(data: Any, asked: ColumnOptions, name: str) -> Source | None:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return _from_table(data, asked, name)
    if isinstance(data, pa.RecordBatchReader):
        return _from_reader(data, asked, name)
    return None


def _from_query(data: Any, asked: ColumnOptions, name: str) -> Source:
    """Return the source of a polars query, which runs anew for each pass, from the row asked for."""
    import polars as pl

    if not hasattr(data, "collect_batches"):
        raise SourceError(
            f"{name}: this polars cannot give a query in batches: pip install -U polars, or collect() it."
        )
    try:
        schema = pl.DataFrame(schema=data.collect_schema()).to_arrow().schema
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{name}: the query cannot be run: {error}") from error
    wanted = layout_of(schema, asked, name)
    query = data.select(wanted.read)
    if wanted.width is None:
        one = query.drop_nulls(wanted.columns[0]).limit(1)
        wanted = measured(wanted, _collected(one, 1, name), name)

    def batches(start: int, size: int) -> tuple[int, Iterator[Any]]:
        return start, _collected(query.slice(start), size, name)

    plan = {"query": described([data.explain(optimized=False)])}
    return ArrowSource(batches, wanted, None, name, facts=lambda: plan)


def _collected(query: Any, size: int, name: str) -> Iterator[Any]:
    """Give the record batches of a polars query."""
    import polars as pl

    try:
        for frame in query.collect_batches(chunk_size=size, maintain_order=True, lazy=True):
            yield from frame.to_arrow().to_batches()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{name}: the query failed: {error}") from error


def _from_table(data: Any, asked: ColumnOptions, name: str) -> Source:
    """Return the source of an Arrow table: blocks are cut from it without a copy, then laid by rows."""
    if not data.num_rows:
        raise SourceError(f"{name} has columns but no rows.")
    wanted = layout_of(data.schema, asked, name, nulls=False)
    table = data.select(wanted.read)
    if any(_nulls(table.column(one)) for one in wanted.columns):
        wanted = layout_of(data.schema, asked, name)

    def batches(start: int, size: int) -> tuple[int, Iterator[Any]]:
        rows = range(start, table.num_rows, size)
        return start, (part for row in rows for part in table.slice(row, size).to_batches())

    layout = measured(wanted, batches(0, 64)[1], name)
    source = ArrowSource(
        batches, layout, table.num_rows, name, facts=lambda: {"rows": digest_of_rows(source)}
    )
    return source


def _nulls(column: Any) -> bool:
    """Say whether a column misses values, or its lists do."""
    import pyarrow.types as types

    if column.null_count or not types.is_nested(column.type):
        return bool(column.null_count)
    return any(chunk.flatten().null_count for chunk in column.chunks)


def _from_reader(data: Any, asked: ColumnOptions, name: str) -> Source:
    """Return the source of a stream of record batches, which can be read once."""
    wanted = layout_of(data.schema, asked, name)
    given, looked_at, begun = guarded(data, name), [], False

    def looking() -> Iterator[Any]:
        for batch in given:
            looked_at.append(batch)
            yield batch

    def batches(start: int, size: int) -> tuple[int, Iterator[Any]]:
        nonlocal begun
        if begun:
            raise SourceError(f"{name} can be read once, and was: give a Table or a path instead.")
        begun = True
        return 0, itertools.chain(looked_at, given)

    return ArrowSource(batches, measured(wanted, looking(), name), None, name, again=False)
