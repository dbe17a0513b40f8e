"""The command line: `eigengame fit`, `transform`, `report` and more, as thin wrappers of the library."""

from __future__ import annotations

import sys
from collections.abc import Sequence

REQUIRED = ("typer", "rich")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with these arguments (default: `sys.argv[1:]`) and exit."""
    try:
        from eigengame.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in REQUIRED:
            raise
        sys.exit(f'eigengame: the command line needs {error.name}: pip install "eigengame[cli]"')
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
