"""Arrow record batches as blocks: numeric columns side by side, or one column whose lists are the rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eigengame.sources._base import Block, Source, SourceError, recut
from eigengame.sources._digest import digest_of_blocks, digest_of_files
from eigengame.sources._index_columns import index_of_schema, warn_left_out
from eigengame.sources._table_columns import (
    Column,
    ColumnOptions,
    checked_weights,
    choose,
    described,
    left_out,
    located,
    with_room_for_missing,
)

if TYPE_CHECKING:
    import pyarrow as pa

Batches = Callable[[int, int], tuple[int, Iterable[Any]]]
"""From a row and a block size to the row where the first record batch begins, and the batches from there."""


@dataclass(frozen=True)
class Layout:
    """How rows lie in record batches.

    Attributes
    ----------
    columns : tuple of str
        Columns that hold the features: many numbers, or one column of lists.
    weights : str or None
        The column of weights.
    dtype : dtype
        Of the rows.
    lists : bool
        Whether the one column holds each row as a list.
    width : int or None
        Features; None for lists whose length is known only when one is read.
    left_out : tuple of labels
        Index columns that were left out without the user naming them.
    """

    columns: tuple[str, ...]
    weights: str | None
    dtype: np.dtype
    lists: bool = False
    width: int | None = None
    left_out: tuple[Hashable, ...] = ()

    @property
    def read(self) -> list[str]:
        """The columns to read: features, then weights."""
        return [*self.columns, *([] if self.weights is None else [self.weights])]


class ArrowSource(Source):
    """Rows of record batches, wherever those come from.

    Parameters
    ----------
    batches : callable
        See `Batches`.
    layout : Layout
        With its width.
    rows : int or None
    name : str
    feature_names : sequence of str, optional
        By default the names of the columns, where these are the features.
    again : bool
    facts : callable, optional
        Returns what else belongs to the fingerprint.
    files : sequence of str, optional
        Paths of the files that the batches are read from.
    """

    def __init__(
        self,
        batches: Batches,
        layout: Layout,
        rows: int | None,
        name: str,
        *,
        feature_names: Sequence[str] | None = None,
        again: bool = True,
        facts: Callable[[], dict[str, Any]] | None = None,
        files: Sequence[str] | None = None,
    ) -> None:
        if rows == 0:
            raise SourceError(f"{name} has columns but no rows.")
        assert layout.width is not None
        warn_left_out(name, layout.left_out)
        self.name, self.again = name, again
        self.shape, self.dtype = (rows, layout.width), layout.dtype
        named = layout.columns if feature_names is None and not layout.lists else feature_names
        self.feature_names = None if named is None else list(named)
        self.layout = layout
        self._batches = batches
        self._facts, self._files = facts, files

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`."""
        row, batches = self._batches(start, size)
        return recut(self._converted(batches, row, start), 0, size)

    def _converted(self, batches: Iterable[Any], row: int, start: int) -> Iterator[Block]:
        """Give blocks of the batches from `start` on; the first batch begins at `row`."""
        for batch in batches:
            skipped = min(max(start - row, 0), batch.num_rows)
            if skipped < batch.num_rows:
                yield block_of(batch.slice(skipped), self.layout, self.name, row + skipped)
            row += batch.num_rows

    def fingerprint(self) -> dict[str, Any]:
        """Return name, shape and dtype, the columns, and the facts of where they lie."""
        about: dict[str, Any] = {"columns": described(self.layout.columns)}
        if self.layout.weights is not None:
            about["weights"] = self.layout.weights
        return super().fingerprint() | about | (self._facts() if self._facts is not None else {})

    def digest(self) -> str | None:
        """Return a digest of the files, or of all rows where there are none."""
        return digest_of_blocks(self) if self._files is None else digest_of_files(self._files)


def layout_of(schema: pa.Schema, asked: ColumnOptions, name: str, *, nulls: bool = True) -> Layout:
    """Return how rows lie in batches of a schema.

    Parameters
    ----------
    schema : Schema
    asked : ColumnOptions
        A column of lists is taken where it is the only one left. An index that pandas stored is left out
        unless it is named.
    name : str
        Of the table, for messages.
    nulls : bool
        Whether there may be missing values: whole numbers then become floats.
    """
    labels, (columns, weights, drop) = schema.names, asked
    index = index_of_schema(schema)
    features, weight = located(labels, columns, weights, name, drop=drop, index=index)
    first = schema.field(features[0]).type
    inner = _inside(first)
    lists = len(features) == 1 and inner is not None and numbers(inner) is not None
    table = [Column(field.name, str(field.type), numbers(field.type)) for field in schema]
    if lists:
        table[features[0]] = table[features[0]]._replace(dtype=numbers(inner))
    elif len(features) > 1:
        _refuse_mixed_lists(schema, features, name)
    choice = choose(table, [labels[position] for position in features], weights, name)
    unnamed = left_out(labels, columns, weights, drop, index)
    dtype = with_room_for_missing(choice.dtype) if nulls else choice.dtype
    return Layout(
        columns=tuple(labels[position] for position in features),
        weights=None if weight is None else labels[weight],
        dtype=dtype,
        lists=lists,
        width=_fixed_width(first) if lists else len(features),
        left_out=tuple(unnamed),
    )


def measured(layout: Layout, batches: Iterable[pa.RecordBatch], name: str) -> Layout:
    """Return the layout with the width of its lists, from the first row that has one."""
    if layout.width is not None:
        return layout
    for batch in batches:
        lists = _storage(batch.column(layout.columns[0])).drop_null()
        if len(lists):
            return replace(layout, width=len(lists[0]))
    raise SourceError(f"{name}: column {layout.columns[0]!r} holds no list in any row.")


def block_of(batch: pa.RecordBatch, layout: Layout, name: str, row: int) -> Block:
    """Return a record batch, whose first row is `row` of the source, as a block; nulls become NaN."""
    if layout.lists:
        values = _lists(batch.column(layout.columns[0]), layout, name, row)
    else:
        columns = list(layout.columns)
        values = _numbers(
            batch if batch.schema.names == columns else batch.select(columns), layout.dtype
        )
    if layout.weights is None:
        return Block(values)
    weights = _flat(batch.column(layout.weights), np.dtype(np.float64))
    return Block(values, checked_weights(weights, name, row))


def guarded(batches: Iterable[Any], where: str) -> Iterator[Any]:
    """Give the batches; an error in reading says where it was and after how many rows."""
    import pyarrow as pa

    rows = 0
    try:
        for batch in batches:
            yield batch
            rows += batch.num_rows
    except (pa.ArrowException, OSError, EOFError) as error:
        raise SourceError(
            f"{where} cannot be read beyond row {rows} ({_first_line(error)}): it is damaged or not whole; "
            "make it anew."
        ) from error


def numbers(kind: pa.DataType) -> np.dtype | None:
    """Return the dtype for an Arrow type, None where it is not one of numbers."""
    import pyarrow.types as types

    if types.is_boolean(kind):
        return np.dtype(np.uint8)
    if types.is_integer(kind) or types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    return np.dtype(np.float64) if types.is_decimal(kind) else None


def _inside(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the values of a list type."""
    import pyarrow as pa
    import pyarrow.types as types

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return kind.value_type
    return None


def _fixed_width(kind: pa.DataType) -> int | None:
    import pyarrow as pa
    import pyarrow.types as types

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return int(kind.list_size) if types.is_fixed_size_list(kind) else None


def _refuse_mixed_lists(schema: pa.Schema, features: Sequence[int], name: str) -> None:
    """Refuse a list column beside others: it is a row by itself."""
    lists = [i for i in features if _inside(schema.field(i).type) is not None]
    if lists:
        label = schema.field(lists[0]).name
        raise SourceError(
            f"{name}: column {label!r} holds {schema.field(lists[0]).type}, a whole row in itself: give "
            f"columns={label!r} to take it alone, or columns without it."
        )


def _numbers(batch: pa.RecordBatch, dtype: np.dtype) -> np.ndarray:
    """Return numeric columns as one array of shape (rows, columns)."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(dtype)
    if any(field.type != kind for field in batch.schema):
        cast = [column.cast(kind, safe=False) for column in batch.columns]
        batch = pa.RecordBatch.from_arrays(cast, names=batch.schema.names)
    return np.asarray(batch.to_tensor(null_to_nan=dtype.kind == "f").to_numpy())


def _lists(column: pa.Array, layout: Layout, name: str, row: int) -> np.ndarray:
    """Return a column of lists as one array of shape (rows, width); a null row becomes NaN."""
    import pyarrow.compute as pc

    column, width = _storage(column), layout.width
    assert width is not None
    lengths = pc.fill_null(pc.list_value_length(column), width).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        raise SourceError(
            f"{name}: rows have {width} features at first, but the list in row {row + wrong[0]} of column "
            f"{layout.columns[0]!r} has {lengths[wrong[0]]}: give lists of one length."
        )
    held = _flat(column.drop_null().flatten(), layout.dtype).reshape(-1, width)
    if not column.null_count:
        return held
    values = np.full((len(column), width), np.nan, layout.dtype)
    values[column.is_valid().to_numpy(zero_copy_only=False)] = held
    return values


def _flat(column: pa.Array, dtype: np.dtype) -> np.ndarray:
    """Return an Arrow array of numbers as a NumPy array; nulls become NaN."""
    import pyarrow as pa

    cast = column.cast(pa.from_numpy_dtype(dtype), safe=False)
    return np.asarray(cast.to_numpy(zero_copy_only=False), dtype)


def _storage(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
