"""Options that several commands share, and groups of them that arrive as one object."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from eigengame.cli.running import with_parameters

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, a folder, or an address: .npy, .h5, .zarr, .parquet, .csv, .h5ad, .bed, images, ...",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A .safetensors file that `fit` wrote.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def grouped(kind: type, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take the fields of a dataclass as options, and hand them over as one object.

    Parameters
    ----------
    kind : dataclass
        Its fields are annotated as typer's options are.
    name : str
        The command's parameter that receives it.
    """
    fields = dataclasses.fields(kind)
    hints = get_type_hints(kind, include_extras=True)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            group = kind(**{field.name: given.pop(field.name) for field in fields})
            command(**given, **{name: group})

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
        with_parameters(run, [*(one for one in own if one.name != name), *options])
        return run

    return decorate


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """Return the sizes of a text such as 28x28."""
    try:
        sizes = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise typer.BadParameter(f"{text!r} is no size: give one such as 28x28.", param_hint=option)
    return sizes


def component_count(text: str) -> int | float:
    """Return how many components a text asks for: a whole number, or a share such as 0.9."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if (kind is int and number >= 1) or (kind is float and 0 < number < 1):
            return number
        break
    raise typer.BadParameter(
        f"{text!r}: give a whole number from 1 up, or the share of the variance to reach, such as 0.9.",
        param_hint="-k",
    )
