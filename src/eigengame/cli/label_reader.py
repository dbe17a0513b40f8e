"""Read labels, ids or times of rows from a file, or from a column of the data."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
ARROW = (".parquet", ".arrow", ".feather", ".ipc")


class Labels(list[Any]):
    """List of values, one per row, with a name."""

    def __init__(self, values: Iterable[Any], name: str) -> None:
        super().__init__(values)
        self.name = name


def read_labels(
    labels: str,
    data: str,
    header: bool | None = None,
    option: str = "--labels",
    *,
    numbers: bool = True,
) -> Labels:
    """Read one label, id or time per row.

    Parameters
    ----------
    labels : str
        A file (.npy, idx, or text with one label per line), else a column of the data.
    data : str
        The path of the data: a table, or AnnData, whose `obs` has columns.
    header : bool, optional
        Whether the first line of a text table contains column names. Detected by default.
    option : str
        The option that was given, for messages.
    numbers : bool
        Whether texts that are all numbers are converted. An id such as 007 stays a text.
    """
    if Path(labels).is_file():
        return Labels(_read_file(Path(labels), numbers), Path(labels).stem)
    lowered = data.lower().rstrip("/")
    try:
        if lowered.endswith(TEXT):
            texts = _text_column(Path(data), labels, "auto" if header is None else header)
            return Labels(_as_numbers(texts) if numbers else texts, labels)
        if lowered.endswith(ARROW):
            return Labels(_arrow_column(data, labels), labels)
        if lowered.endswith(".h5ad"):
            return Labels(_anndata_column(data, labels), labels)
    except UnknownColumn as error:
        raise ValueError(f"{option} {error}") from None
    raise ValueError(
        f"{option} {labels}: this file does not exist, and {data} has no columns with names: give a .npy file, "
        "or text with one value per line."
    )


class UnknownColumn(ValueError):
    """A name that is not a column of the data."""


def _read_file(path: Path, numbers: bool) -> list[Any]:
    """Return the values of a file that contains nothing else."""
    name = path.name.lower()
    if name.endswith(".npy"):
        labels = np.load(path, allow_pickle=False)
    elif name.endswith((".idx", "-ubyte", ".idx.gz", "-ubyte.gz")):
        labels = _read_idx(path)
    else:
        try:
            lines = path.read_text().splitlines()
            return _as_numbers(lines) if numbers else list(lines)
        except UnicodeDecodeError:
            raise ValueError(
                f"{path} is not text: give a .npy or idx file, or text with one value per line."
            ) from None
    if labels.ndim != 1:
        raise ValueError(f"{path} has shape {labels.shape}: give one value per row.")
    return list(labels.tolist())


def _read_idx(path: Path) -> np.ndarray:
    """Return the labels of an idx file, such as those of MNIST: one axis of bytes."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        if file.read(8)[:4] != b"\0\0\x08\x01":
            raise ValueError(
                f"{path} is not an idx file of labels: give one with a single axis of bytes."
            )
        return np.frombuffer(file.read(), np.uint8)


def _text_column(path: Path, name: str, header: bool | str) -> list[str]:
    """Return a column of a text table with names."""
    from eigengame.sources import SourceError, _text_format
    from eigengame.sources._memory import MAX_ITEM

    form = _text_format.detect_format(str(path), header, "auto", MAX_ITEM)
    index = _column_index(form.names or [], name, path)
    try:
        lines = _text_format.read_lines(str(path), form, 0, MAX_ITEM)
        return [line.fields[index] for line in lines]
    except _text_format.UNREADABLE as error:
        raise SourceError(
            f"{path} cannot be read ({error}): it is damaged or truncated."
        ) from error


def _arrow_column(path: str, name: str) -> list[Any]:
    """Return a column of a Parquet or Arrow file, or of a folder of such files."""
    from pyarrow import dataset

    form = "parquet" if path.lower().rstrip("/").endswith(".parquet") else "ipc"
    table = dataset.dataset(path, format=form)
    _column_index(table.schema.names, name, path)
    return list(table.to_table(columns=[name]).column(0).to_pylist())


def _anndata_column(path: str, name: str) -> list[Any]:
    """Return a column of `obs` in an AnnData file."""
    from eigengame.sources._anndata_tables import column_names, read_column
    from eigengame.sources._hdf5_file import explain_damage, open_file
    from eigengame.sources._hdf5_links import find

    with open_file(path) as file, explain_damage(path):
        values = read_column(file, "obs", name)
        known = column_names(find(file, "obs"))
    _column_index([one for one in known if not one.startswith("_")], name, path)
    assert values is not None
    return values


def _column_index(names: Sequence[str], name: str, path: Any) -> int:
    """Return the index of a column, or raise `UnknownColumn` with the known names."""
    if name not in names:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") or "no names"
        raise UnknownColumn(f"{name}: neither a file nor a column of {path}, which has {shown}.")
    return list(names).index(name)


def _as_numbers(texts: list[str]) -> list[Any]:
    """Convert texts to numbers if all of them are numbers."""
    for kind in (int, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return list(texts)
