"""`eigengame reproduce`: a pointer to the experiments, which are not part of the installed package."""

from __future__ import annotations

from typing import Annotated

import typer

from eigengame.cli.errors import FAILED, handle_errors, print_message
from eigengame.cli.options import Json
from eigengame.cli.output import print_json

EXAMPLES = ("eigengame reproduce", "eigengame reproduce synthetic")


@handle_errors
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments to run.")
    ] = None,
    json: Json = False,
) -> None:
    """Print how to run the paper's experiments, which are in the folder reproduction/ of the repository.

    From a checkout of the repository, run python -m reproduction NAME, or make reproduce for all of them.
    """
    command = f"python -m reproduction {' '.join(names or ['all'])}"
    if json:
        print_json({"folder": "reproduction", "command": command})
    print_message(
        "the experiments are in the folder reproduction/ of the repository, not in the installed package. "
        f"From a checkout, run\n  {command}"
    )
    raise typer.Exit(FAILED)
