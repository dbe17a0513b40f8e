"""Arrow record batches as blocks: numeric columns side by side, or one column of lists."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eigengame.sources._arrow_errors import explained
from eigengame.sources._base import Block, Source, SourceError, rechunk
from eigengame.sources._digest import digest_of_blocks, digest_of_files
from eigengame.sources._index_columns import schema_index_positions, warn_omitted
from eigengame.sources._table_columns import (
    Column,
    ColumnOptions,
    check_weights,
    choose_columns,
    describe_labels,
    locate_columns,
    nan_dtype,
    omitted_index,
)

if TYPE_CHECKING:
    import pyarrow as pa

Batches = Callable[[int, int], tuple[int, Iterable[Any]]]
"""Function of a start row and a block size. Returns the first row of the first batch, and the batches."""


@dataclass(frozen=True)
class ArrowLayout:
    """Layout of rows in record batches.

    Attributes
    ----------
    columns : tuple of str
        Columns of the features: numeric columns, or one column of lists.
    weights : str or None
        Column of sample weights.
    dtype : dtype
        Dtype of the rows.
    lists : bool
        Whether rows are the lists of one column.
    width : int or None
        Number of features; None for lists of a length that is not yet known.
    omitted : tuple of labels
        Index columns that are left out although the user did not name them.
    """

    columns: tuple[str, ...]
    weights: str | None
    dtype: np.dtype
    lists: bool = False
    width: int | None = None
    omitted: tuple[Hashable, ...] = ()

    @property
    def needed(self) -> list[str]:
        """Columns to read: features, then weights."""
        return [*self.columns, *([] if self.weights is None else [self.weights])]


class ArrowSource(Source):
    """Rows of record batches.

    Parameters
    ----------
    batches : callable
        See `Batches`.
    layout : ArrowLayout
        With its width.
    rows : int or None
    name : str
    again : bool
        Whether the batches can be read more than once.
    facts : callable, optional
        Returns further facts for the fingerprint.
    files : sequence of str, optional
        Files from which the batches are read.
    """

    def __init__(
        self,
        batches: Batches,
        layout: ArrowLayout,
        rows: int | None,
        name: str,
        *,
        again: bool = True,
        facts: Callable[[], dict[str, Any]] | None = None,
        files: Sequence[str] | None = None,
    ) -> None:
        if rows == 0:
            raise SourceError(f"{name} has columns but no rows.")
        assert layout.width is not None
        if not layout.width:
            raise SourceError(f"{name} has no features: its lists are empty.")
        warn_omitted(name, layout.omitted)
        self.name, self.again = name, again
        self.shape, self.dtype = (rows, layout.width), layout.dtype
        self.feature_names = None if layout.lists else list(layout.columns)
        self.layout = layout
        self._batches = batches
        self._facts, self._files = facts, files

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        row, batches = self._batches(start, size)
        return rechunk(self._convert(batches, row, start), 0, size)

    def _convert(self, batches: Iterable[Any], row: int, start: int) -> Iterator[Block]:
        """Yield the batches from `start` on as blocks; the first batch begins at `row`."""
        for batch in batches:
            skipped = min(max(start - row, 0), batch.num_rows)
            if skipped < batch.num_rows:
                with explained(f"{self.name}: the rows from row {row + skipped} on cannot be read"):
                    block = to_block(batch.slice(skipped), self.layout, self.name, row + skipped)
                yield block
            row += batch.num_rows

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, columns, and facts about the origin of the batches."""
        about: dict[str, Any] = {"columns": describe_labels(self.layout.columns)}
        if self.layout.weights is not None:
            about["weights"] = self.layout.weights
        return super().fingerprint() | about | (self._facts() if self._facts is not None else {})

    def digest(self) -> str | None:
        """Return a digest of the files, or of all rows if there are no files."""
        return digest_of_blocks(self) if self._files is None else digest_of_files(self._files)


def layout_of(
    schema: pa.Schema, options: ColumnOptions, name: str, *, nulls: bool = True
) -> ArrowLayout:
    """Return the layout of rows in batches of a schema.

    Parameters
    ----------
    schema : Schema
    options : ColumnOptions
        A column of lists must be the only feature column. An index that pandas stored is left out, unless
        `options.columns` names it.
    name : str
        Name of the table, for messages.
    nulls : bool
        Whether values may be missing. Integers then become floats.
    """
    labels, index = schema.names, schema_index_positions(schema)
    features, weight = locate_columns(labels, options, name, index)
    first = schema.field(features[0]).type
    element = _element_type(first)
    lists = len(features) == 1 and element is not None and numpy_dtype(element) is not None
    table = [Column(field.name, str(field.type), numpy_dtype(field.type)) for field in schema]
    if lists:
        table[features[0]] = table[features[0]]._replace(dtype=numpy_dtype(element))
    elif len(features) > 1:
        _refuse_mixed_lists(schema, features, name)
    columns = tuple(labels[position] for position in features)
    choice = choose_columns(table, ColumnOptions(list(columns), options.weights), name)
    return ArrowLayout(
        columns=columns,
        weights=None if weight is None else labels[weight],
        dtype=nan_dtype(choice.dtype) if nulls else choice.dtype,
        lists=lists,
        width=_fixed_length(first) if lists else len(features),
        omitted=tuple(omitted_index(labels, options, index)),
    )


def with_list_length(
    layout: ArrowLayout, batches: Iterable[pa.RecordBatch], name: str
) -> ArrowLayout:
    """Return the layout with the length of its lists, taken from the first list."""
    if layout.width is not None:
        return layout
    for batch in batches:
        lists = _storage(batch.column(layout.columns[0])).drop_null()
        if len(lists):
            return replace(layout, width=len(lists[0]))
    raise SourceError(f"{name}: column {layout.columns[0]!r} has no list in any row.")


def to_block(batch: pa.RecordBatch, layout: ArrowLayout, name: str, row: int) -> Block:
    """Return a record batch as a block. Nulls become NaN; `row` is the batch's first row."""
    if layout.lists:
        values = _stack_lists(batch.column(layout.columns[0]), layout, name, row)
    else:
        columns = list(layout.columns)
        values = _stack_columns(
            batch if batch.schema.names == columns else batch.select(columns), layout.dtype
        )
    if layout.weights is None:
        return Block(values)
    weights = _to_numpy(batch.column(layout.weights), np.dtype(np.float64))
    return Block(values, check_weights(weights, name, row))


def numpy_dtype(kind: pa.DataType) -> np.dtype | None:
    """Return the NumPy dtype of an Arrow type of numbers; None for other types."""
    import pyarrow.types as types

    if types.is_boolean(kind):
        return np.dtype(np.uint8)
    if types.is_integer(kind) or types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    return np.dtype(np.float64) if types.is_decimal(kind) else None


def _storage_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _element_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the element type of a list type; None for other types."""
    import pyarrow.types as types

    kind = _storage_type(kind)
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return kind.value_type
    return None


def _fixed_length(kind: pa.DataType) -> int | None:
    """Return the length of a fixed-size list type; None for other types."""
    import pyarrow.types as types

    kind = _storage_type(kind)
    return int(kind.list_size) if types.is_fixed_size_list(kind) else None


def _refuse_mixed_lists(schema: pa.Schema, features: Sequence[int], name: str) -> None:
    """Raise if a column of lists is combined with other columns."""
    lists = [i for i in features if _element_type(schema.field(i).type) is not None]
    if lists:
        label = schema.field(lists[0]).name
        raise SourceError(
            f"{name}: column {label!r} holds {schema.field(lists[0]).type}, a whole row in each list: give "
            f"columns={label!r} to use it alone, or columns without it."
        )


def _stack_columns(batch: pa.RecordBatch, dtype: np.dtype) -> np.ndarray:
    """Return numeric columns as one array of shape (rows, columns)."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(dtype)
    if any(field.type != kind for field in batch.schema):
        cast = [column.cast(kind, safe=False) for column in batch.columns]
        batch = pa.RecordBatch.from_arrays(cast, names=batch.schema.names)
    return np.asarray(batch.to_tensor(null_to_nan=dtype.kind == "f").to_numpy())


def _stack_lists(column: pa.Array, layout: ArrowLayout, name: str, row: int) -> np.ndarray:
    """Return a column of lists as one array of shape (rows, width). A null list becomes NaN."""
    import pyarrow.compute as pc

    column, width = _storage(column), layout.width
    assert width is not None
    lengths = pc.fill_null(pc.list_value_length(column), width).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        raise SourceError(
            f"{name}: the first rows have {width} features, but the list in row {row + wrong[0]} of column "
            f"{layout.columns[0]!r} has {lengths[wrong[0]]}: give lists of one length."
        )
    present = _to_numpy(column.drop_null().flatten(), layout.dtype).reshape(-1, width)
    if not column.null_count:
        return present
    values = np.full((len(column), width), np.nan, layout.dtype)
    values[column.is_valid().to_numpy(zero_copy_only=False)] = present
    return values


def _to_numpy(column: pa.Array, dtype: np.dtype) -> np.ndarray:
    """Return an Arrow array of numbers as a NumPy array. Nulls become NaN."""
    import pyarrow as pa

    cast = column.cast(pa.from_numpy_dtype(dtype), safe=False)
    return np.asarray(cast.to_numpy(zero_copy_only=False), dtype)


def _storage(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return column.storage if isinstance(column, pa.ExtensionArray) else column
