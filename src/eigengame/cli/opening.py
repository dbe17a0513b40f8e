"""How DATA is opened and prepared: the options, and what the library makes of them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from eigengame.cli.options import whole_numbers
from eigengame.cli.running import say

OPEN, PREPARE = "Opening the data", "Preparing the data"


@dataclass(frozen=True)
class Opening:
    """Options for opening data."""

    key: Annotated[
        str | None,
        typer.Option(
            help="Which array: a path in HDF5 or Zarr, a name in .npz.", rich_help_panel=OPEN
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Columns to take, by name or by number from 0.",
            rich_help_panel=OPEN,
        ),
    ] = None
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Columns to leave out, by name or by number from 0.",
            rich_help_panel=OPEN,
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of a text table holds names; found out by default.",
            show_default=False,
            rich_help_panel=OPEN,
        ),
    ] = None
    layer: Annotated[
        str | None,
        typer.Option(help="Which layer of AnnData; X if not given.", rich_help_panel=OPEN),
    ] = None
    raw_columns: Annotated[
        int | None, typer.Option(help="Columns of a raw binary file.", min=1, rich_help_panel=OPEN)
    ] = None
    raw_dtype: Annotated[
        str | None,
        typer.Option(help="Numbers of a raw binary file, such as float32.", rich_help_panel=OPEN),
    ] = None
    image_size: Annotated[
        str | None,
        typer.Option(
            metavar="HxW",
            help="Size to bring images to, such as 32x32; needed if they have different sizes.",
            rich_help_panel=OPEN,
        ),
    ] = None
    grey: Annotated[
        bool | None,
        typer.Option(
            "--grey/--colour",
            help="Read images with one channel or with three; one if all of them are grey.",
            rich_help_panel=OPEN,
            show_default=False,
        ),
    ] = None

    def options(self) -> dict[str, Any]:
        """Return what a source takes, by its names, columns by name apart."""
        given: dict[str, Any] = {"key": self.key, "layer": self.layer}
        given |= {"columns": self.raw_columns, "dtype": self.raw_dtype, "header": self.header}
        given |= {"grey": self.grey}
        if self.image_size is not None:
            given["size"] = whole_numbers(self.image_size, "--image-size")
        return {name: value for name, value in given.items() if value is not None}

    def names(self) -> list[str] | None:
        """Return the columns to take, by name or number."""
        return _split(self.columns)

    def dropped(self) -> list[str] | None:
        """Return the columns to leave out, by name or number."""
        return _split(self.drop)


@dataclass(frozen=True)
class Preparing:
    """Options for weighing and preparing rows before they are played."""

    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that says how often a row counts.",
            rich_help_panel=PREPARE,
        ),
    ] = None
    missing: Annotated[
        Literal["raise", "mean", "skip"],
        typer.Option(
            help="What to do with NaN: refuse it, fill in the column's mean, or skip the row.",
            rich_help_panel=PREPARE,
        ),
    ] = "raise"
    counts: Annotated[
        Literal["log1p", "log-normalise"] | None,
        typer.Option(
            help="For counts: log(1 + x), or the same of rows brought to one total.",
            rich_help_panel=PREPARE,
        ),
    ] = None
    scale: Annotated[
        Literal["two-pass"] | None,
        typer.Option(
            help="Scale columns to unit variance, which takes one more pass.",
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
            help="Read blocks of rows, and the rows in them, in a random order: for sorted data.",
            rich_help_panel=PREPARE,
        ),
    ] = None

    def needed(self) -> bool:
        """Say whether anything is to be done to the rows."""
        return self.genotypes or self.missing != "raise" or bool(self.counts or self.scale)


def opened_for_fit(data: str, opening: Opening, preparing: Preparing) -> Any:
    """Return the rows to fit, prepared as asked."""
    from eigengame.sources import as_source

    options, names, dropped = opening.options(), opening.names(), opening.dropped()
    if preparing.weights is not None:
        options["weights"] = preparing.weights
    totals = preparing.counts == "log-normalise"
    if _is_table(data):
        # A table leaves columns out as it is read: they may hold no numbers. Totals of rows need all of them.
        chosen = {"columns": None if totals else names, "drop": dropped}
        options |= {name: given for name, given in chosen.items() if given is not None}
        names, dropped = names if totals else None, None
    with _warnings_said():
        if names is not None and totals:
            from eigengame.preparation.opening import open_all_columns

            source = open_all_columns(data, **options)
        else:
            source = as_source(data, **options)
    if preparing.shuffle is not None:
        from eigengame import shuffled

        source = shuffled(source, preparing.shuffle)
    if names is None and dropped is None and not preparing.needed():
        return source
    from eigengame.preparation import prepare

    return prepare(
        source,
        columns=None if names is None else [_number_or_name(name) for name in names],
        drop=None if dropped is None else [_number_or_name(name) for name in dropped],
        missing=preparing.missing,
        counts=preparing.counts,
        scale=preparing.scale,
        genotypes=preparing.genotypes,
    )


def opened_for_model(data: str, opening: Opening, model: Any) -> Any:
    """Return rows for a model, which prepares them itself as those of its fit; the same columns."""
    from eigengame.sources import as_source

    options, names, dropped = opening.options(), opening.names(), opening.dropped()
    # Totals of rows need all columns; the model selects its own afterwards.
    chosen = model._preparation is None or not model._preparation.whole_rows
    if dropped is not None:
        options["drop"] = dropped
    elif names is not None:
        options["columns"] = names
    elif chosen and _is_table(data) and hasattr(model, "feature_names_in_"):
        known = [str(name) for name in model.feature_names_in_]
        with _warnings_said():
            source = as_source(data, **options | {"columns": known})
        if source.feature_names is not None:  # else names that are numbers were taken for positions
            return source
    with _warnings_said():
        return as_source(data, **options)


@contextlib.contextmanager
def _warnings_said() -> Iterator[None]:
    """Print warnings about columns as messages of the program."""
    from eigengame.sources import ColumnWarning

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ColumnWarning)
        yield
    for one in seen:
        if issubclass(one.category, ColumnWarning):
            say(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _is_table(data: str) -> bool:
    """Return whether the columns of a path have names to choose by."""
    from eigengame.sources import is_table

    return is_table(data) or (
        Path(data).is_dir() and not data.lower().rstrip("/").endswith(".zarr")
    )


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _number_or_name(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text
