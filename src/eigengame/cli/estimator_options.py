"""The parameters of the estimator as command-line options."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import typer

from eigengame.cli.options import options_in_panel

ALGORITHMS = (
    "auto",
    "exact",
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
"""Values of --algorithm: "auto", "exact" and the keys of `eigengame.algorithms.REGISTRY`, listed here because
`--help` and shell completion must not import JAX. A test compares the two."""

_option = options_in_panel("Algorithm")


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


def _check_tolerance(text: str) -> str:
    if text in ("auto", "none"):
        return text
    try:
        angle = float(text)
    except ValueError:
        angle = math.nan
    if not 0 < angle < math.inf:
        raise typer.BadParameter(f"{text!r}: give an angle above 0 in radians, auto, or none.")
    return text


def _check_number(text: str) -> str:
    if text != "auto" and not text.isdecimal():
        raise typer.BadParameter(f"{text!r}: give a whole number from 0, or auto.")
    return text


@dataclass(frozen=True)
class EstimatorOptions:
    """Parameters of `EigenGamePCA` other than the number of components."""

    algorithm: Annotated[
        str,
        _option(
            callback=_check_algorithm,
            autocompletion=_list_algorithms,
            help="See `eigengame algorithms`.",
        ),
    ] = "auto"
    batch_size: Annotated[
        str, _option(callback=_check_batch_size, metavar="ROWS", help="Rows per update, or auto.")
    ] = "auto"
    extra: Annotated[
        str,
        _option(
            callback=_check_number,
            metavar="NUMBER",
            help="Players in addition to those of the components, or auto; more improve accuracy and bounds.",
        ),
    ] = "auto"
    probes: Annotated[
        str,
        _option(
            callback=_check_number,
            metavar="NUMBER",
            help="Random probes that certify the components, or auto; 0 saves their time.",
        ),
    ] = "auto"
    passes: Annotated[
        str,
        _option(
            callback=_check_batch_size,
            metavar="NUMBER",
            help="Largest number of passes over the data; after the first, components are refined and measured. "
            "auto: 16, or 30 with a number for --tol, or 1 with --tol none.",
        ),
    ] = "auto"
    tol: Annotated[
        str,
        _option(
            callback=_check_tolerance,
            metavar="RADIANS",
            help="Stop when every component is certified to this angle; auto: 0.05. none: make all --passes.",
        ),
    ] = "auto"
    center: Annotated[
        bool, _option("--center/--no-center", help="Whether to subtract the mean.")
    ] = True
    whiten: Annotated[bool, _option("--whiten", help="Scale scores to unit variance.")] = False
    forget: Annotated[
        float,
        _option(
            help="Forgetting factor: each new row multiplies the weight of earlier rows by this value."
        ),
    ] = 1.0
    dtype: Annotated[
        Literal["float32", "float64"],
        _option(
            help="Precision of the computation; up to 262,144 numbers are always computed in float64."
        ),
    ] = "float32"
    mesh: Annotated[
        str | None,
        _option(
            metavar="SIZES", help="Devices to use: data=2,features=4, or auto for all of them."
        ),
    ] = None
    seed: Annotated[
        int, _option(min=0, help="Seed for the initial players and the random probes.")
    ] = 0

    def parameters(self) -> dict[str, Any]:
        """Return the keyword arguments of `EigenGamePCA`."""
        parameters = asdict(self)
        parameters["random_state"] = parameters.pop("seed")
        for name in ("batch_size", "extra", "probes", "passes"):
            if parameters[name] != "auto":
                parameters[name] = int(parameters[name])
        if self.tol != "auto":
            parameters["tol"] = None if self.tol == "none" else float(self.tol)
        return parameters
