"""Opening of data for a preparation: which columns of a table are read."""

from __future__ import annotations

import contextlib
from typing import Any

from eigengame.preparation.column_selection import ColumnSelection, all_but
from eigengame.sources import Source, SourceError, UnknownOption, as_source


def open_columns(data: Any, selection: ColumnSelection | None, **options: Any) -> Source:
    """Return a source for the data. Of a table, only the columns selected by name are read.

    The other columns of a table need not hold numbers.
    """
    if selection is not None and selection.named:
        with contextlib.suppress(UnknownOption):
            source = as_source(data, columns=list(selection.wanted), **options)
            # Without names, decimal texts were interpreted as positions.
            if source.feature_names is not None:
                return source
    return as_source(data, **options)


def open_without(data: Any, drop: Any, **options: Any) -> tuple[Source, ColumnSelection | None]:
    """Return a source for the data, and the step that drops some of its features.

    A table drops them when it is opened, so they need not hold numbers. The step then names the remaining
    columns, so that a model finds them in other data; it is None for a table without names.
    """
    if not isinstance(data, Source):
        with contextlib.suppress(UnknownOption):
            source = as_source(data, drop=drop, **options)
            names = source.feature_names or []
            return source, ColumnSelection(names) if len(set(names)) == source.shape[1] else None
    source = as_source(data, **options)
    return source, all_but(source, drop)


def open_all_columns(data: Any, **options: Any) -> Source:
    """Return a source for all columns of the data, which the totals of rows need."""
    try:
        return as_source(data, **options)
    except UnknownOption:
        raise
    except SourceError as error:
        raise SourceError(
            f"{error} (counts='log-normalise' and 'pearson' read all columns for the totals of the rows. Give "
            "the columns that are counts by prepare(as_source(data, columns=[...]), ...).)"
        ) from None
