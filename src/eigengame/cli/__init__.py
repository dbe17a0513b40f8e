"""The command line: `eigengame fit`, `transform`, `report` and the rest, thin over the library."""

from __future__ import annotations

import sys
from collections.abc import Sequence

NEEDED = ("typer", "rich")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with these arguments, else those of the program, and exit."""
    try:
        from eigengame.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(f'eigengame: the command line needs {error.name}: pip install "eigengame[cli]"')
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
