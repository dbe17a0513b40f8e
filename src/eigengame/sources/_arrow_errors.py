"""Errors of Arrow as errors that name the file and the row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from eigengame.sources._base import SourceError, one_line


@contextlib.contextmanager
def explained(problem: str) -> Iterator[None]:
    """Turn an error of Arrow into a `SourceError` that states the problem.

    Memory that Arrow cannot allocate is most often a damaged length in the file.
    """
    import pyarrow as pa

    try:
        yield
    except SourceError:
        raise
    except Exception as error:  # damaged data raises errors of many types
        if isinstance(error, MemoryError) and not isinstance(error, pa.ArrowException):
            raise
        raise SourceError(
            f"{problem} ({one_line(error)}): it is damaged or incomplete, or its batches are too large for the "
            "memory; write it again."
        ) from error


def explain_errors(
    batches: Iterable[Any], where: str, expected: int | None = None
) -> Iterator[Any]:
    """Yield the batches; turn an error while reading into a `SourceError` that names the row.

    If the number of rows is known, another one is an error too.
    """
    rows = 0
    iterator = iter(batches)
    while True:
        with explained(f"{where} cannot be read beyond row {rows}"):
            batch = next(iterator, None)
        if batch is None:
            break
        yield batch
        rows += batch.num_rows
    if expected is not None and rows != expected:
        raise SourceError(
            f"{where} is damaged: it has {rows} rows, but its metadata states {expected}; write it again."
        )
