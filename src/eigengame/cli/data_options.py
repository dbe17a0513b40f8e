"""Options for opening and preparing DATA, and the sources they produce."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from eigengame.cli.errors import print_message
from eigengame.cli.options import options_in_panel, parse_bytes, parse_sizes

_open_option = options_in_panel("Opening the data")
_prepare_option = options_in_panel("Preparing the data")


@dataclass(frozen=True)
class DataOptions:
    """Options for opening data."""

    key: Annotated[
        str | None, _open_option(help="The array to read: a path in HDF5 or Zarr, a name in .npz.")
    ] = None
    variable: Annotated[
        str | None,
        _open_option(metavar="A,B", help="Variables of a netCDF file, with groups: ocean/sst."),
    ] = None
    dim: Annotated[
        str | None,
        _open_option(
            metavar="DIM",
            help="Dimension of the samples of a netCDF file, or several: time,member. Default: the time.",
        ),
    ] = None
    columns: Annotated[
        str | None,
        _open_option(metavar="A,B,C", help="Columns to use, by name or by index from 0."),
    ] = None
    drop: Annotated[
        str | None,
        _open_option(metavar="A,B,C", help="Columns to drop, by name or by index from 0."),
    ] = None
    header: Annotated[
        bool | None,
        _open_option(
            "--header/--no-header",
            help="Whether the first line of a text table contains column names. Default: detected.",
            show_default=False,
        ),
    ] = None
    layer: Annotated[
        str | None,
        _open_option(
            help="Layer of an AnnData file; raw is raw.X. Default: X, or the layer of the model."
        ),
    ] = None
    raw_columns: Annotated[
        int | None, _open_option(help="Number of columns of a raw binary file.", min=1)
    ] = None
    raw_dtype: Annotated[
        str | None, _open_option(help="Data type of a raw binary file, such as float32.")
    ] = None
    image_size: Annotated[
        str | None,
        _open_option(
            metavar="HxW",
            help="Resize images to this size, such as 32x32. Required if their sizes differ.",
        ),
    ] = None
    grey: Annotated[
        bool | None,
        _open_option(
            "--grey/--colour",
            help="Read images with one channel or with three. Default: one if all images are grey.",
            show_default=False,
        ),
    ] = None

    max_bytes: Annotated[
        str | None,
        _open_option(
            metavar="SIZE",
            help="Largest memory for a part that is read as a whole, such as 8G: a compressed array or chunk "
            "(default 4G), an image or a line of text (default 256M).",
        ),
    ] = None
    external: Annotated[
        bool,
        _open_option(
            "--external", help="Read data that an HDF5 file takes from other files, by links."
        ),
    ] = False

    def source_options(self) -> dict[str, Any]:
        """Return the options of `as_source`, except those that select columns."""
        size = None if self.image_size is None else parse_sizes(self.image_size, "--image-size")
        options: dict[str, Any] = {"key": self.key, "layer": self.layer, "header": self.header}
        options |= {"variable": _split(self.variable), "dim": _split(self.dim)}
        options |= {"columns": self.raw_columns, "dtype": self.raw_dtype}
        limit = None if self.max_bytes is None else parse_bytes(self.max_bytes, "--max-bytes")
        options |= {"max_bytes": limit, "external": self.external or None}
        return _without_none(options | {"size": size, "grey": self.grey})

    def selected(self) -> tuple[list[str] | None, list[str] | None]:
        """Return the columns to use and the columns to drop, by name or index."""
        return _split(self.columns), _split(self.drop)


@dataclass(frozen=True)
class PreparationOptions:
    """Options for weighting and preparing rows before the fit."""

    weights: Annotated[
        str | None, _prepare_option(metavar="COLUMN", help="Column with the weight of each row.")
    ] = None
    missing: Annotated[
        Literal["raise", "mean", "skip"],
        _prepare_option(
            help="Handling of NaN: raise an error, impute the column mean, or skip the row."
        ),
    ] = "raise"
    counts: Annotated[
        Literal["log1p", "log-normalise", "pearson"] | None,
        _prepare_option(
            help="Transform counts: log(1 + x); log-normalise, which first scales each row to the same total; or "
            "Pearson residuals. Totals of rows include all columns."
        ),
    ] = None
    target: Annotated[
        float | None,
        _prepare_option(help="Total of each row for log-normalise. Default: 10000."),
    ] = None
    theta: Annotated[
        float | None,
        _prepare_option(help="Inverse overdispersion of counts for pearson. Default: 100."),
    ] = None
    top_variable: Annotated[
        int | None,
        _prepare_option(
            metavar="N",
            min=1,
            help="Use the N columns that vary most after --counts, as in Seurat; takes one more pass.",
        ),
    ] = None
    scale: Annotated[
        Literal["two-pass"] | None,
        _prepare_option(help="Scale columns to unit variance; takes one more pass."),
    ] = None
    feature_weights: Annotated[
        Literal["coslat"] | None,
        _prepare_option(
            help="Multiply the cells of a field by the square root of the cosine of their latitude."
        ),
    ] = None
    genotypes: Annotated[
        bool, _prepare_option("--genotypes", help="Standardise genotype calls 0, 1, 2.")
    ] = False
    shuffle: Annotated[
        int | None,
        _prepare_option(
            metavar="SEED",
            min=0,
            help="Shuffle blocks of rows, and the rows in each block, with this seed: for sorted data.",
        ),
    ] = None

    def needed(self) -> bool:
        """Return whether any preparation is requested."""
        given = (self.counts, self.scale, self.top_variable, self.feature_weights)
        return self.genotypes or self.missing != "raise" or any(one is not None for one in given)

    def check(self) -> None:
        """Raise ValueError if an option has no effect."""
        for name, value, way in (
            ("--target", self.target, "log-normalise"),
            ("--theta", self.theta, "pearson"),
        ):
            if value is not None and self.counts != way:
                raise ValueError(f"{name} {value:g} has no effect: give --counts {way} too.")


def open_for_fit(data: str, opening: DataOptions, preparation: PreparationOptions) -> Any:
    """Open DATA as a source for a fit, with the requested preparation."""
    from eigengame.sources import as_source

    options, (columns, dropped) = opening.source_options(), opening.selected()
    if preparation.weights is not None:
        options["weights"] = preparation.weights
    preparation.check()
    totals = preparation.counts in ("log-normalise", "pearson")
    if _is_table(data):
        # Select columns while reading: the others may contain text. Row totals need all columns.
        options |= _without_none({"columns": None if totals else columns, "drop": dropped})
        columns, dropped = columns if totals else None, None
    with _column_warnings_as_messages():
        if columns is not None and totals:
            from eigengame.preparation.opening import open_all_columns

            source = open_all_columns(data, **options)
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
        top_variable=preparation.top_variable,
        **_without_none({"target": preparation.target, "theta": preparation.theta}),
        scale=preparation.scale,
        genotypes=preparation.genotypes,
        feature_weights=preparation.feature_weights,
    )


def open_for_model(data: str, opening: DataOptions, model: Any) -> Any:
    """Open DATA as a source with the columns of a model, which repeats the preparation of its fit itself."""
    from eigengame.estimator.layers import layer_of_fit, open_layer_of_fit
    from eigengame.sources import as_source, is_netcdf

    options, (columns, dropped) = opening.source_options(), opening.selected()
    if is_netcdf(data) and "variable" not in options:
        options |= _variables_of(model)
    layer = None if opening.layer is not None else layer_of_fit(model, data)
    if layer is not None:
        return open_layer_of_fit(data, layer, **options)
    names = getattr(model, "feature_names_in_", None)
    if model._preparation is not None:
        # None if all columns are needed: the model selects its own afterwards.
        names = model._preparation.columns_of_table(names)
    if columns is not None or dropped is not None:
        # `as_source` rejects both together.
        options |= _without_none({"columns": columns, "drop": dropped})
    elif names is not None and _is_table(data):
        known = [str(name) for name in names]
        with _column_warnings_as_messages():
            source = as_source(data, **options | {"columns": known})
        if source.feature_names is not None:  # otherwise numeric names were taken for indices
            return source
    with _column_warnings_as_messages():
        return as_source(data, **options)


def _variables_of(model: Any) -> dict[str, Any]:
    """Return the variables of the field that a model was fitted to, as an option; empty if they have no names."""
    from eigengame.preparation import GridCells

    steps = () if model._preparation is None else model._preparation.steps
    names = [one["name"] for step in steps if isinstance(step, GridCells) for one in step.grid]
    return {"variable": names} if names and all(names) else {}


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


def _without_none(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _index_or_name(columns: list[str] | None) -> list[int | str] | None:
    """Convert numbers among column names to indices."""
    if columns is None:
        return None
    return [int(text) if text.lstrip("-").isdecimal() else text for text in columns]
