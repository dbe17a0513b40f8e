"""Labels to colour rows by: from a file of their own, or from a column of the data."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
ARROW = (".parquet", ".arrow", ".feather", ".ipc")


class Labels(list[Any]):
    """Labels that know what they are called."""

    def __init__(self, labels: Iterable[Any], name: str) -> None:
        super().__init__(labels)
        self.name = name


def labels_of(asked: str, data: str, header: bool | None = None) -> Labels:
    """Return one label for each row.

    Parameters
    ----------
    asked : str
        A file (.npy, idx, or text with a label on each line), else a column of the data.
    data : str
        The path of the data: a table, or AnnData, whose `obs` has columns.
    header : bool, optional
        Whether the first line of a text table holds names; found out by default.
    """
    if Path(asked).is_file():
        return Labels(_from_file(Path(asked)), Path(asked).stem)
    lowered = data.lower().rstrip("/")
    if lowered.endswith(TEXT):
        return Labels(_text_column(Path(data), asked, "auto" if header is None else header), asked)
    if lowered.endswith(ARROW):
        return Labels(_arrow_column(data, asked), asked)
    if lowered.endswith(".h5ad"):
        return Labels(_observed(data, asked), asked)
    raise ValueError(
        f"--labels {asked}: there is no such file, and {data} has no columns of labels: give a .npy file, "
        "or text with a label on each line."
    )


def _from_file(path: Path) -> list[Any]:
    """Return the labels of a file that has nothing else."""
    name = path.name.lower()
    if name.endswith(".npy"):
        labels = np.load(path, allow_pickle=False)
    elif name.endswith((".idx", "-ubyte", ".idx.gz", "-ubyte.gz")):
        labels = _idx(path)
    else:
        try:
            return _as_numbers(path.read_text().splitlines())
        except UnicodeDecodeError:
            raise ValueError(
                f"{path} is no text: give a .npy or idx file, or text with a label on each line."
            ) from None
    if labels.ndim != 1:
        raise ValueError(f"{path} has shape {labels.shape}: give one label for each row.")
    return list(labels.tolist())


def _idx(path: Path) -> np.ndarray:
    """Return the labels of an idx file, such as those of MNIST: bytes along one axis."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        if file.read(8)[:4] != b"\0\0\x08\x01":
            raise ValueError(
                f"{path} is no idx file of labels: give one with bytes along one axis."
            )
        return np.frombuffer(file.read(), np.uint8)


def _text_column(path: Path, name: str, header: bool | str) -> list[Any]:
    """Return a column of a text table with names."""
    from eigengame.sources import SourceError, _text_format

    form = _text_format.detect_format(str(path), header, "auto")
    place = _place(form.names or [], name, path)
    try:
        lines = _text_format.read_lines(str(path), form, 0)
        return _as_numbers([line.fields[place] for line in lines])
    except _text_format.UNREADABLE as error:
        raise SourceError(
            f"{path} cannot be read ({error}): it is damaged or not whole."
        ) from error


def _arrow_column(path: str, name: str) -> list[Any]:
    """Return a column of a Parquet or Arrow file, or of a folder of them."""
    from pyarrow import dataset

    form = "parquet" if path.lower().rstrip("/").endswith(".parquet") else "ipc"
    table = dataset.dataset(path, format=form)
    _place(table.schema.names, name, path)
    return list(table.to_table(columns=[name]).column(0).to_pylist())


def _observed(path: str, name: str) -> list[Any]:
    """Return a column of what AnnData says of its rows."""
    import h5py

    with h5py.File(path, "r") as file:
        table = file["obs"]
        _place([key for key in table if not key.startswith("_")], name, path)
        column = table[name]
        if isinstance(column, h5py.Group):
            names = (
                column["categories"].asstr()[()] if column["categories"].dtype == object else None
            )
            names = column["categories"][()] if names is None else names
            return [None if code < 0 else _item(names[code]) for code in column["codes"][()]]
        return list(column.asstr()[()] if column.dtype == object else column[()].tolist())


def _item(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _place(names: Sequence[str], name: str, path: Any) -> int:
    if name not in names:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") or "no names"
        raise ValueError(
            f"--labels {name}: no such file, nor a column of {path}, which has {shown}."
        )
    return list(names).index(name)


def _as_numbers(texts: list[str]) -> list[Any]:
    """Return texts as numbers where all of them are."""
    for kind in (int, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return list(texts)
