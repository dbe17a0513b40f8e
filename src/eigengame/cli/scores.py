"""Scores written block by block, to a file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

Blocks = Iterator[np.ndarray]


def write_scores(path: Path, blocks: Blocks, count: int) -> int:
    """Write blocks of scores and return how many rows they had.

    Parameters
    ----------
    path : path
        Its ending says how: one of `WRITERS`.
    blocks : iterator of arrays of shape (m, count)
        Never more than one of them is held.
    count : int
        Components.
    """
    from eigengame._system.files import written_whole

    names = [f"pc{i + 1}" for i in range(count)]
    whole = _folder_written_whole if path.suffix == ".zarr" else written_whole
    with whole(path) as draft:
        return WRITERS[path.suffix](draft, _read(blocks), names)


def _npy(draft: Path, blocks: Blocks, names: Sequence[str]) -> int:
    """Write a NumPy file from front to back: a full disk is an error here, in a memory map a crash."""
    rows, dtype = 0, np.dtype(np.float64)
    with draft.open("wb") as file:
        _npy_header(file, dtype, (0, len(names)))
        begin = file.tell()
        for block in blocks:
            dtype, rows = block.dtype, rows + len(block)
            file.write(np.ascontiguousarray(block).data)
        # NumPy leaves room in the header for the number of rows to grow.
        file.seek(0)
        _npy_header(file, dtype, (rows, len(names)))
        assert file.tell() == begin
    return rows


def _npy_header(file: IO[bytes], dtype: np.dtype, shape: tuple[int, int]) -> None:
    described = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(file, described)


def _csv(draft: Path, blocks: Blocks, names: Sequence[str]) -> int:
    """Write text with a heading, every number to its last digit."""
    rows = 0
    with draft.open("w") as file:
        file.write(",".join(names) + "\n")
        for block in blocks:
            digits = "%.9g" if block.dtype == np.float32 else "%.17g"
            np.savetxt(file, block, fmt=digits, delimiter=",")
            rows += len(block)
    return rows


def _parquet(draft: Path, blocks: Blocks, names: Sequence[str]) -> int:
    """Write a Parquet file with a column for each component, a row group for each block."""
    import pyarrow as pa
    from pyarrow import parquet

    rows, writer = 0, None
    try:
        for block in blocks:
            table = pa.table(dict(zip(names, np.ascontiguousarray(block.T), strict=True)))
            writer = writer or parquet.ParquetWriter(draft, table.schema)
            writer.write_table(table)
            rows += len(block)
        if writer is None:
            parquet.write_table(
                pa.table({name: pa.array([], pa.float64()) for name in names}), draft
            )
    finally:
        if writer is not None:
            writer.close()
    return rows


def _zarr(draft: Path, blocks: Blocks, names: Sequence[str]) -> int:
    """Write a Zarr array that grows by a chunk for each block."""
    import zarr

    rows, store = 0, None
    for block in blocks:
        if store is None:
            store = zarr.open_array(
                str(draft), mode="w", shape=(0, len(names)), chunks=block.shape, dtype=block.dtype
            )
        store.append(block)
        rows += len(block)
    if store is None:
        zarr.open_array(str(draft), mode="w", shape=(0, len(names)), dtype=np.float64)
    return rows


WRITERS = {".npy": _npy, ".csv": _csv, ".parquet": _parquet, ".zarr": _zarr}


def _read(blocks: Blocks) -> Blocks:
    """Give the blocks; an error of reading is not to be taken for one of writing."""
    from eigengame.sources import SourceError

    try:
        yield from blocks
    except OSError as error:
        raise SourceError(f"the data could not be read to its end: {error}.") from error


@contextlib.contextmanager
def _folder_written_whole(path: Path) -> Iterator[Path]:
    """Give another name to write a folder to, and put it in its place only when it is whole."""
    from eigengame._system.files import StorageError

    draft, old = (path.with_name(f".{path.name}.{os.getpid()}{end}") for end in ("", ".old"))
    try:
        yield draft
        if path.exists():
            path.rename(old)
        try:
            draft.rename(path)
        except OSError:
            old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise StorageError(
            f"{path} could not be written ({error.strerror or error}): what was there before is still good; "
            "make room or give another place, and run again."
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def block_rows(features: int) -> int:
    """Return how many rows to hold at once: a quarter GiB of them in float64."""
    return max(1, min(4096, 2**25 // max(features, 1)))
