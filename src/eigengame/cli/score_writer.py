"""Write scores block by block to a file that appears only when it is complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from eigengame._system import interrupts

Blocks = Iterator[np.ndarray]


def write_scores(path: Path, blocks: Blocks, count: int) -> int:
    """Write blocks of scores and return the number of rows.

    Parameters
    ----------
    path : path
        Its extension selects the format: one of `WRITERS`.
    blocks : iterator of arrays of shape (m, count)
        Only one block is in memory at a time.
    count : int
        Number of components.
    """
    from eigengame._system.atomic_write import atomic_write

    names = [f"pc{i + 1}" for i in range(count)]
    with atomic_write(path) as draft:
        return WRITERS[path.suffix](draft, _convert_read_errors(blocks), names)


def _npy(draft: Path, blocks: Blocks, names: Sequence[str]) -> int:
    """Write a NumPy file sequentially: a full disk is an error here, but would crash a memory map."""
    rows, dtype = 0, np.dtype(np.float64)
    with draft.open("wb") as file:
        _npy_header(file, dtype, (0, len(names)))
        begin = file.tell()
        for block in blocks:
            dtype, rows = block.dtype, rows + len(block)
            file.write(np.ascontiguousarray(block).data)
        # NumPy pads the header, so that a larger number of rows fits in the same space.
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
    """Write text with a header line, numbers with all their digits."""
    rows = 0
    with draft.open("w") as file:
        file.write(",".join(names) + "\n")
        for block in blocks:
            digits = "%.9g" if block.dtype == np.float32 else "%.17g"
            np.savetxt(file, block, fmt=digits, delimiter=",")
            rows += len(block)
    return rows


def _parquet(draft: Path, blocks: Blocks, names: Sequence[str]) -> int:
    """Write a Parquet file with one column per component and one row group per block."""
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
    """Write a Zarr array with one chunk per block."""
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


def _convert_read_errors(blocks: Blocks) -> Blocks:
    """Yield the blocks, and raise errors of reading as SourceError, to tell them from errors of writing."""
    from eigengame.sources import SourceError

    try:
        for block in blocks:
            interrupts.check()
            yield block
    except OSError as error:
        raise SourceError(f"the data could not be read to the end: {error}.") from error


def block_rows(features: int) -> int:
    """Return the number of rows per block: at most a quarter GiB in float64."""
    return max(1, min(4096, 2**25 // max(features, 1)))
