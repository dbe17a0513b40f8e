"""Options that several commands share, and option groups that a command receives as one object."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, folder or URL: .npy, .h5, .zarr, .parquet, .csv, .h5ad, .bed, images, ...",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A .safetensors file written by `fit`.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
FullPaths = Annotated[
    bool,
    typer.Option("--full-paths", help="Write the path of DATA to the model, not only its name."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")]


def parse_bytes(text: str, option: str) -> int:
    """Return a number of bytes such as 500000000, 500M or 8G. K, M, G and T are powers of 1024."""
    powers = {"K": 10, "M": 20, "G": 30, "T": 40}
    number, letter = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isdecimal() or int(number) < 1 or letter not in {"", *powers}:
        raise typer.BadParameter(
            f"{text!r} is not a number of bytes: give one such as 500M or 8G.", param_hint=option
        )
    return int(number) << powers.get(letter, 0)


def options_in_panel(title: str) -> Callable[..., Any]:
    """Return `typer.Option` for options that `--help` shows in a panel with this title."""
    return functools.partial(typer.Option, rich_help_panel=title)


def set_parameters(function: Any, parameters: list[inspect.Parameter]) -> None:
    """Set the signature of a function that typer reads, independent of its own arguments."""
    function.__signature__ = inspect.Signature(
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    function.__annotations__ = {one.name: one.annotation for one in parameters}


def option_group(kind: type, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the fields of a dataclass to a command as options, and pass them as one object.

    Parameters
    ----------
    kind : dataclass
        Its fields are annotated with typer options.
    name : str
        The parameter of the command that receives the object.
    """
    fields = dataclasses.fields(kind)
    hints = get_type_hints(kind, include_extras=True)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            group = kind(**{field.name: values.pop(field.name) for field in fields})
            command(**values, **{name: group})

        own = inspect.signature(command, eval_str=True).parameters.values()
        options = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=hints[field.name],
            )
            for field in fields
        ]
        set_parameters(run, [*(one for one in own if one.name != name), *options])
        return run

    return decorate


def parse_sizes(text: str, option: str) -> tuple[int, ...]:
    """Return the sizes in a text such as 28x28."""
    try:
        sizes = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise typer.BadParameter(f"{text!r}: give a size such as 28x28.", param_hint=option)
    return sizes


def parse_component_count(text: str) -> int | float:
    """Return the value of -k: a number of components, or a share of the variance such as 0.9."""
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    raise typer.BadParameter(
        f"{text!r}: give a whole number from 1, or the share of the variance to explain, such as 0.9.",
        param_hint="-k",
    )
