"""Write scores block by block to a file that appears only when it is complete."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from eigengame._system import interrupts

Blocks = Iterator[np.ndarray]
Ids = Mapping[str, Sequence[str]]


def write_scores(path: Path, blocks: Blocks, count: int, ids: Ids | None = None) -> int:
    """Write blocks of scores and return the number of rows.

    Parameters
    ----------
    path : path
        Its extension selects the format: one of `WRITERS`.
    blocks : iterator of arrays of shape (m, count)
        Only one block is in memory at a time.
    count : int
        Number of components.
    ids : mapping of str to sequence of str, optional
        Columns that identify the rows, by name, which precede the scores in tables. Arrays do not have them.
    """
    from eigengame._system.atomic_write import atomic_write

    names = [f"pc{i + 1}" for i in range(count)]
    with atomic_write(path) as draft:
        return WRITERS[path.suffix](draft, convert_read_errors(blocks), names, ids or {})


def _npy(draft: Path, blocks: Blocks, names: Sequence[str], ids: Ids) -> int:
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


def _csv(draft: Path, blocks: Blocks, names: Sequence[str], ids: Ids) -> int:
    """Write text separated by commas, with a header line."""
    return _text(draft, blocks, [*ids, *names], ids, ",")


def _tsv(draft: Path, blocks: Blocks, names: Sequence[str], ids: Ids) -> int:
    """Write text separated by tabs, with a header line."""
    return _text(draft, blocks, [*ids, *names], ids, "\t")


def _eigenvec(draft: Path, blocks: Blocks, names: Sequence[str], ids: Ids) -> int:
    """Write the format of PLINK 2: tabs, and a header such as `#FID IID PC1 PC2`."""
    known = {"IID" if name == "id" else name: values for name, values in ids.items()}
    header = [*known, *(name.upper() for name in names)]
    return _text(draft, blocks, [f"#{header[0]}", *header[1:]], known, "\t")


def _text(draft: Path, blocks: Blocks, header: Sequence[str], ids: Ids, delimiter: str) -> int:
    """Write a text table, numbers with all their digits."""
    rows, columns = 0, list(ids.values())
    with draft.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        lines.writerow(header)
        for block in blocks:
            digits = "%.9g" if block.dtype == np.float32 else "%.17g"
            if columns:
                own = zip(*(one[rows : rows + len(block)] for one in columns), strict=True)
                scores = (map(digits.__mod__, row) for row in block.tolist())
                lines.writerows([*one, *row] for one, row in zip(own, scores, strict=True))
            else:
                np.savetxt(file, block, fmt=digits, delimiter=delimiter)
            rows += len(block)
    return rows


def _parquet(draft: Path, blocks: Blocks, names: Sequence[str], ids: Ids) -> int:
    """Write a Parquet file with one column per component and one row group per block."""
    import pyarrow as pa
    from pyarrow import parquet

    rows, writer = 0, None
    try:
        for block in blocks:
            own = {name: pa.array(ids[name][rows : rows + len(block)], pa.string()) for name in ids}
            scores = dict(zip(names, np.ascontiguousarray(block.T), strict=True))
            table = pa.table(own | scores)
            writer = writer or parquet.ParquetWriter(draft, table.schema)
            writer.write_table(table)
            rows += len(block)
        if writer is None:
            own = {name: pa.array([], pa.string()) for name in ids}
            scores = {name: pa.array([], pa.float64()) for name in names}
            parquet.write_table(pa.table(own | scores), draft)
    finally:
        if writer is not None:
            writer.close()
    return rows


def _zarr(draft: Path, blocks: Blocks, names: Sequence[str], ids: Ids) -> int:
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


WRITERS = {
    ".npy": _npy,
    ".csv": _csv,
    ".tsv": _tsv,
    ".eigenvec": _eigenvec,
    ".parquet": _parquet,
    ".zarr": _zarr,
}

TABLES = (".csv", ".tsv", ".eigenvec", ".parquet")
"""Formats with columns for the ids of rows."""


def convert_read_errors(blocks: Blocks) -> Blocks:
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
