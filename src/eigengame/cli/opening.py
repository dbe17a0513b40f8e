"""How DATA is opened and prepared: the options, and what the library makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from eigengame.cli.options import whole_numbers

OPEN, PREPARE = "Opening the data", "Preparing the data"

TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".parquet", ".arrow", ".feather", ".ipc")
"""Endings of files whose columns have names of their own."""


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
        given |= {"columns": self.raw_columns, "dtype": self.raw_dtype, "grey": self.grey}
        if self.image_size is not None:
            given["size"] = whole_numbers(self.image_size, "--image-size")
        return {name: value for name, value in given.items() if value is not None}

    def names(self) -> list[str] | None:
        """Return the columns asked for by name."""
        return None if self.columns is None else [name.strip() for name in self.columns.split(",")]


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

    options, names = opening.options(), opening.names()
    if preparing.weights is not None:
        options["weights"] = preparing.weights
    if names is not None and _is_table(data) and preparing.counts != "log-normalise":
        # A table leaves columns out as it is read: they may hold no numbers. Totals of rows need all of them.
        options["columns"], names = names, None
    if names is not None and preparing.counts == "log-normalise":
        from eigengame.preparation.prepared import opened_whole

        source = opened_whole(data, **options)
    else:
        source = as_source(data, **options)
    if preparing.shuffle is not None:
        from eigengame import shuffled

        source = shuffled(source, preparing.shuffle)
    if names is None and not preparing.needed():
        return source
    from eigengame.preparation import prepare

    return prepare(
        source,
        columns=None if names is None else [_number_or_name(name) for name in names],
        missing=preparing.missing,
        counts=preparing.counts,
        scale=preparing.scale,
        genotypes=preparing.genotypes,
    )


def opened_for_model(data: str, opening: Opening, model: Any) -> Any:
    """Return rows for a model, which prepares them itself as those of its fit; the same columns."""
    from eigengame.sources import as_source

    options, names = opening.options(), opening.names()
    chosen = model._preparation is None or not model._preparation.whole_rows
    if names is None and chosen and _is_table(data) and hasattr(model, "feature_names_in_"):
        names = [str(name) for name in model.feature_names_in_]
    return as_source(data, **options if names is None else options | {"columns": names})


def _is_table(data: str) -> bool:
    """Say whether the columns of a path have names to choose by."""
    lowered = data.lower().rstrip("/")
    return lowered.endswith(TABLES) or (Path(data).is_dir() and not lowered.endswith(".zarr"))


def _number_or_name(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text
