"""The options of the estimator, as options of the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

PLAY = "Playing"


def algorithm_names() -> list[str]:
    """Return the names that --algorithm takes, without importing what they stand for.

    Every algorithm has a file of its name.
    """
    files = (Path(__file__).parents[1] / "algorithms").glob("[a-z]*.py")
    return ["auto", *sorted(file.stem for file in files)]


def _known(name: str) -> str:
    if name not in algorithm_names():
        raise typer.BadParameter(f"{name!r} is none of {', '.join(algorithm_names())}.")
    return name


def _batch_size(text: str) -> str:
    if text != "auto" and not (text.isdecimal() and int(text) > 0):
        raise typer.BadParameter(f"{text!r}: give a whole number from 1 up, or auto.")
    return text


@dataclass(frozen=True)
class Game:
    """Options for playing."""

    algorithm: Annotated[
        str,
        typer.Option(
            callback=_known,
            autocompletion=algorithm_names,
            help="See `eigengame algorithms`.",
            rich_help_panel=PLAY,
        ),
    ] = "remembered"
    batch_size: Annotated[
        str,
        typer.Option(
            callback=_batch_size,
            metavar="ROWS",
            help="Rows for each update, or auto.",
            rich_help_panel=PLAY,
        ),
    ] = "auto"
    passes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Times to read the data; beyond one, components are refined and measured.",
            rich_help_panel=PLAY,
        ),
    ] = 1
    tol: Annotated[
        float | None,
        typer.Option(
            metavar="RADIANS",
            help="Stop when every component is within this angle by its certificate.",
            rich_help_panel=PLAY,
        ),
    ] = None
    center: Annotated[
        bool,
        typer.Option(
            "--center/--no-center", help="Whether to subtract the mean.", rich_help_panel=PLAY
        ),
    ] = True
    whiten: Annotated[
        bool,
        typer.Option("--whiten", help="Scores of unit variance.", rich_help_panel=PLAY),
    ] = False
    forget: Annotated[
        float,
        typer.Option(
            help="Factor by which each new row multiplies the weight of earlier rows; 1 forgets nothing.",
            rich_help_panel=PLAY,
        ),
    ] = 1.0
    dtype: Annotated[
        Literal["float32", "float64"],
        typer.Option(help="Precision to play in.", rich_help_panel=PLAY),
    ] = "float32"
    mesh: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES",
            help="Devices to share the work: data=2,features=4, or auto for all there are.",
            rich_help_panel=PLAY,
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Where players start.", rich_help_panel=PLAY)] = 0

    def parameters(self) -> dict[str, Any]:
        """Return what the estimator takes, by its names."""
        given = asdict(self)
        given["random_state"] = given.pop("seed")
        if self.batch_size != "auto":
            given["batch_size"] = int(self.batch_size)
        return given
