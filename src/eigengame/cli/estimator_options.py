"""The parameters of the estimator as command-line options."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import typer

ALGORITHMS = (
    "auto",
    "remembered",
    "best_response",
    "alpha",
    "sequential",
    "mu",
    "oja",
    "hebb_deflation",
    "gha",
    "krasulina",
    "frequent_directions",
)
"""Values of --algorithm: "auto" and the keys of `eigengame.algorithms.REGISTRY`, listed here because `--help` and
shell completion must not import JAX. A test compares the two."""

PANEL = "Algorithm"


def _list_algorithms() -> list[str]:
    return list(ALGORITHMS)


def _check_algorithm(name: str) -> str:
    if name not in ALGORITHMS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(ALGORITHMS)}.")
    return name


def _check_batch_size(text: str) -> str:
    if text != "auto" and not (text.isdecimal() and int(text) > 0):
        raise typer.BadParameter(f"{text!r}: give a whole number from 1, or auto.")
    return text


@dataclass(frozen=True)
class EstimatorOptions:
    """Parameters of `EigenGamePCA` other than the number of components."""

    algorithm: Annotated[
        str,
        typer.Option(
            callback=_check_algorithm,
            autocompletion=_list_algorithms,
            help="See `eigengame algorithms`.",
            rich_help_panel=PANEL,
        ),
    ] = "remembered"
    batch_size: Annotated[
        str,
        typer.Option(
            callback=_check_batch_size,
            metavar="ROWS",
            help="Rows per update, or auto.",
            rich_help_panel=PANEL,
        ),
    ] = "auto"
    passes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum number of passes over the data; after the first, components are refined and measured.",
            rich_help_panel=PANEL,
        ),
    ] = 1
    tol: Annotated[
        float | None,
        typer.Option(
            metavar="RADIANS",
            help="Stop when the certificate bounds the angle of every component by this value.",
            rich_help_panel=PANEL,
        ),
    ] = None
    center: Annotated[
        bool,
        typer.Option(
            "--center/--no-center", help="Whether to subtract the mean.", rich_help_panel=PANEL
        ),
    ] = True
    whiten: Annotated[
        bool,
        typer.Option("--whiten", help="Scale scores to unit variance.", rich_help_panel=PANEL),
    ] = False
    forget: Annotated[
        float,
        typer.Option(
            help="Forgetting factor: each new row multiplies the weight of earlier rows by this value.",
            rich_help_panel=PANEL,
        ),
    ] = 1.0
    dtype: Annotated[
        Literal["float32", "float64"],
        typer.Option(help="Precision of the computation.", rich_help_panel=PANEL),
    ] = "float32"
    mesh: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES",
            help="Devices to use: data=2,features=4, or auto for all of them.",
            rich_help_panel=PANEL,
        ),
    ] = None
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            help="Seed for the initial players and the random probes.",
            rich_help_panel=PANEL,
        ),
    ] = 0

    def parameters(self) -> dict[str, Any]:
        """Return the keyword arguments of `EigenGamePCA`."""
        parameters = asdict(self)
        parameters["random_state"] = parameters.pop("seed")
        if self.batch_size != "auto":
            parameters["batch_size"] = int(self.batch_size)
        return parameters
