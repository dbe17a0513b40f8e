"""`eigengame reproduce`: the paper's figures and claims, again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eigengame.cli.errors import (
    FAILED,
    error_message,
    handle_errors,
    print_message,
)
from eigengame.cli.fitting import use_compilation_cache
from eigengame.cli.options import Json
from eigengame.cli.output import print_json, print_table

if TYPE_CHECKING:
    from eigengame.experiments import Claim

EXAMPLES = (
    "eigengame reproduce",
    "eigengame reproduce synthetic --quick",
    "eigengame reproduce all --out reproduction",
    "eigengame reproduce mnist --data train-images-idx3-ubyte.gz",
)


@handle_errors
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Experiments, or all; none lists them."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Play little: to see that it works, not to judge by.")
    ] = False,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The folder to write a folder for each into.")
    ] = Path("reproduction"),
    data: Annotated[
        str | None,
        typer.Option(
            help="A folder of data: MNIST, and for resnet weights and photographs. Else EIGENGAME_DATA, openml."
        ),
    ] = None,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Play nothing: figures and claims of results in --out.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Let a quick run write over a full one.")
    ] = False,
    json: Json = False,
) -> None:
    """Reproduce the paper's experiments: a figure, the numbers, and which claims hold.

    Each experiment NAME writes figure.png, figure.svg, results.json and claims.json into OUT/NAME, and
    OUT/index.html shows all that are there. What is done stays done where a later one fails.
    """
    from eigengame.experiments import EXPERIMENTS

    if not names:
        return _list(json)
    chosen = _chosen(names, tuple(EXPERIMENTS))
    # Before minutes are spent on figures that could not be drawn.
    import matplotlib  # noqa: F401

    from eigengame.experiments import Run
    from eigengame.experiments._record import make_room, present, refuse_to_lose
    from eigengame.experiments._record import reproduce as run_one
    from eigengame.experiments.page import write_webpage

    for name in chosen:
        if not (redraw or force):
            refuse_to_lose(out / name, quick=quick)
    make_room(out)
    use_compilation_cache()

    def play(name: str) -> list[Claim]:
        if redraw:
            return present(out / name)
        return run_one(name, out / name, Run(quick, _teller(name), data))

    claims, failed = _each(chosen, play)
    page = write_webpage(out) if claims else None
    if json:
        facts = {name: [claim._asdict() for claim in found] for name, found in claims.items()}
        print_json({"claims": facts, "failed": failed, "page": page})
    else:
        for name, found in claims.items():
            print(f"{name}: {out / name}")
            print_table(
                ("holds", "the paper's claim", "measured"),
                [("yes" if one.holds else "no", one.claim, one.measured) for one in found],
            )
        if page:
            print(f"Written: {page}: open it in a browser.")
    if failed:
        raise typer.Exit(FAILED)


def _list(json: bool) -> None:
    """Show what there is to reproduce."""
    from eigengame.experiments import EXPERIMENTS

    if json:
        return print_json({"experiments": dict(EXPERIMENTS)})
    print_table(("experiment", "what it plays"), EXPERIMENTS.items())
    print("Run one by eigengame reproduce NAME, or all of them by eigengame reproduce all.")


def _chosen(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the experiments asked for, each once and all of them known, before one of them begins."""
    from eigengame import _check

    asked = known if "all" in names else names
    return [_check.one_of("NAME", name, (*known, "all")) for name in dict.fromkeys(asked)]


def _each(
    names: Sequence[str], play: Callable[[str], list[Claim]]
) -> tuple[dict[str, list[Claim]], dict[str, str]]:
    """Return the claims of what could be played, and why the rest could not: one does not stop others."""
    claims, failed = {}, {}
    for name in names:
        try:
            claims[name] = play(name)
        except (ValueError, OSError, ImportError) as error:
            failed[name] = error_message(error)
            print_message(f"{name}: {failed[name]}")
    return claims, failed


def _teller(name: str) -> Callable[[str], None]:
    """Return a function that tells how far an experiment is, and since when."""
    begun = time.monotonic()
    return lambda line: print_message(f"{name}, {time.monotonic() - begun:.0f} s: {line}")
