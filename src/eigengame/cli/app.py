"""The application with all its commands, and the messages of usage errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from eigengame._version import __version__
from eigengame.cli import (
    algorithms,
    certify,
    compare,
    demo,
    export,
    fit,
    fit_activations,
    inspect,
    merge,
    monitor,
    report,
    reproduce,
    transform,
)
from eigengame.cli.errors import OK, STOPPED, USAGE, print_message

COMMANDS = (
    fit,
    fit_activations,
    transform,
    monitor,
    certify,
    inspect,
    merge,
    compare,
    export,
    report,
    demo,
    algorithms,
    reproduce,
)

app = typer.Typer(
    name="eigengame",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        print(f"eigengame {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Examples:\n\n  eigengame demo\n\n  eigengame fit data.npy -k 16\n\n"
    "  eigengame fit --help\n\nExit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted."
)
def eigengame_(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Principal components of large or streaming data, with a certificate of their accuracy."""


for module in COMMANDS:
    name = module.__name__.rsplit(".", 1)[-1]
    lines = ("Examples:", *(f"  {line}" for line in module.EXAMPLES))
    app.command(name.replace("_", "-"), epilog="\n\n".join(lines))(getattr(module, name))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; print usage errors in one line."""
    command: Any = typer.main.get_command(app)
    try:
        code = command.main(
            list(arguments) or ["--help"], prog_name="eigengame", standalone_mode=False
        )
    except KeyboardInterrupt:
        print_message("stopped.")
        return STOPPED
    except Exception as error:
        # Usage errors are exceptions of click, which typer may vendor under another module name.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "eigengame"
        message = str(error.format_message()).rstrip(".")
        end = "" if message.endswith("?") else "."
        print_message(f"{message}{end} See {path} --help.")
        return USAGE
    finally:
        sys.stderr.flush()
    return code if isinstance(code, int) else OK
