"""Options for opening and preparing DATA, and the sources they produce."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from eigengame.cli.errors import print_message
from eigengame.cli.options import parse_sizes

OPEN, PREPARE = "Opening the data", "Preparing the data"


@dataclass(frozen=True)
class DataOptions:
    """Options for opening data."""

    key: Annotated[
        str | None,
        typer.Option(
            help="The array to read: a path in HDF5 or Zarr, a name in .npz.",
            rich_help_panel=OPEN,
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Columns to use, by name or by index from 0.",
            rich_help_panel=OPEN,
        ),
    ] = None
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Columns to drop, by name or by index from 0.",
            rich_help_panel=OPEN,
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of a text table contains column names. Default: detected.",
            show_default=False,
            rich_help_panel=OPEN,
        ),
    ] = None
    layer: Annotated[
        str | None,
        typer.Option(help="Layer of an AnnData file. Default: X.", rich_help_panel=OPEN),
    ] = None
    raw_columns: Annotated[
        int | None,
        typer.Option(help="Number of columns of a raw binary file.", min=1, rich_help_panel=OPEN),
    ] = None
    raw_dtype: Annotated[
        str | None,
        typer.Option(help="Data type of a raw binary file, such as float32.", rich_help_panel=OPEN),
    ] = None
    image_size: Annotated[
        str | None,
        typer.Option(
            metavar="HxW",
            help="Resize images to this size, such as 32x32. Required if their sizes differ.",
            rich_help_panel=OPEN,
        ),
    ] = None
    grey: Annotated[
        bool | None,
        typer.Option(
            "--grey/--colour",
            help="Read images with one channel or with three. Default: one if all images are grey.",
            rich_help_panel=OPEN,
            show_default=False,
        ),
    ] = None

    def source_options(self) -> dict[str, Any]:
        """Return the options of `as_source`, except those that select columns."""
        given: dict[str, Any] = {"key": self.key, "layer": self.layer}
        given |= {"columns": self.raw_columns, "dtype": self.raw_dtype, "header": self.header}
        given |= {"grey": self.grey}
        if self.image_size is not None:
            given["size"] = parse_sizes(self.image_size, "--image-size")
        return {name: value for name, value in given.items() if value is not None}

    def selected(self) -> tuple[list[str] | None, list[str] | None]:
        """Return the columns to use and the columns to drop, by name or index."""
        return _split(self.columns), _split(self.drop)


@dataclass(frozen=True)
class PreparationOptions:
    """Options for weighting and preparing rows before the fit."""

    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the weight of each row.",
            rich_help_panel=PREPARE,
        ),
    ] = None
    missing: Annotated[
        Literal["raise", "mean", "skip"],
        typer.Option(
            help="Handling of NaN: raise an error, impute the column mean, or skip the row.",
            rich_help_panel=PREPARE,
        ),
    ] = "raise"
    counts: Annotated[
        Literal["log1p", "log-normalise"] | None,
        typer.Option(
            help="Transform counts: log(1 + x), or log-normalise, which first scales each row to the same total.",
            rich_help_panel=PREPARE,
        ),
    ] = None
    scale: Annotated[
        Literal["two-pass"] | None,
        typer.Option(
            help="Scale columns to unit variance; takes one more pass.",
            rich_help_panel=PREPARE,
        ),
    ] = None
    genotypes: Annotated[
        bool,
        typer.Option(
            "--genotypes", help="Standardise genotype calls 0, 1, 2.", rich_help_panel=PREPARE
        ),
    ] = False
    shuffle: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            min=0,
            help="Shuffle blocks of rows, and the rows in each block, with this seed: for sorted data.",
            rich_help_panel=PREPARE,
        ),
    ] = None

    def needed(self) -> bool:
        """Return whether any preparation is requested."""
        return self.genotypes or self.missing != "raise" or bool(self.counts or self.scale)


def open_for_fit(data: str, opening: DataOptions, preparation: PreparationOptions) -> Any:
    """Open DATA as a source for a fit, with the requested preparation."""
    from eigengame.sources import as_source

    options, (columns, dropped) = opening.source_options(), opening.selected()
    if preparation.weights is not None:
        options["weights"] = preparation.weights
    totals = preparation.counts == "log-normalise"
    if _is_table(data):
        # Select columns while reading: the others may contain text. Row totals need all columns.
        options |= _selection(None if totals else columns, dropped)
        columns, dropped = columns if totals else None, None
    with _column_warnings_as_messages():
        if columns is not None and totals:
            from eigengame.preparation.prepared import opened_whole

            source = opened_whole(data, **options)
        else:
            source = as_source(data, **options)
    if preparation.shuffle is not None:
        from eigengame import shuffled

        source = shuffled(source, preparation.shuffle)
    if columns is None and dropped is None and not preparation.needed():
        return source
    from eigengame.preparation import prepare

    return prepare(
        source,
        columns=_index_or_name(columns),
        drop=_index_or_name(dropped),
        missing=preparation.missing,
        counts=preparation.counts,
        scale=preparation.scale,
        genotypes=preparation.genotypes,
    )


def open_for_model(data: str, opening: DataOptions, model: Any) -> Any:
    """Open DATA as a source with the columns of a model, which repeats the preparation of its fit itself."""
    from eigengame.sources import as_source

    options, (columns, dropped) = opening.source_options(), opening.selected()
    # Row totals need all columns; the model selects its own afterwards.
    select = model._preparation is None or not model._preparation.whole_rows
    if columns is not None or dropped is not None:
        options |= _selection(columns, dropped)
    elif select and _is_table(data) and hasattr(model, "feature_names_in_"):
        known = [str(name) for name in model.feature_names_in_]
        with _column_warnings_as_messages():
            source = as_source(data, **options | {"columns": known})
        if source.feature_names is not None:  # otherwise numeric names were taken for indices
            return source
    with _column_warnings_as_messages():
        return as_source(data, **options)


@contextlib.contextmanager
def _column_warnings_as_messages() -> Iterator[None]:
    """Print column warnings as messages of the program."""
    from eigengame.sources import ColumnWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ColumnWarning)
        yield
    for one in caught:
        if issubclass(one.category, ColumnWarning):
            print_message(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _is_table(data: str) -> bool:
    """Return whether columns of this data can be selected by name."""
    from eigengame.sources import is_table

    return is_table(data) or (
        Path(data).is_dir() and not data.lower().rstrip("/").endswith(".zarr")
    )


def _selection(columns: list[str] | None, dropped: list[str] | None) -> dict[str, list[str]]:
    """Return the options of `as_source` that select columns; it rejects both of them together."""
    selection = {"columns": columns, "drop": dropped}
    return {name: value for name, value in selection.items() if value is not None}


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _index_or_name(columns: list[str] | None) -> list[int | str] | None:
    """Convert numbers among column names to indices."""
    if columns is None:
        return None
    return [int(text) if text.lstrip("-").isdecimal() else text for text in columns]
