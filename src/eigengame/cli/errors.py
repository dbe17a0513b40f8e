"""Error messages and exit codes of the commands, and their reaction to Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from eigengame._system import interrupts
from eigengame._system.extras import install_command, package_of
from eigengame.cli.options import set_parameters

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 130
"""Exit codes: success, failure, wrong usage, interrupted."""

Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]


def print_message(text: str) -> None:
    """Print a message on stderr; stdout is for results only."""
    print(f"eigengame: {text}", file=sys.stderr, flush=True)


def handle_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: print errors in one or two lines, and add the option --debug."""

    @functools.wraps(command)
    def run(*, debug: bool, **values: Any) -> None:
        try:
            with interrupts.as_keyboard_interrupt():
                command(**values)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader closed the pipe. Python must not try to flush stdout again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as error:
            print_message(str(error) or "stopped.")
            raise typer.Exit(STOPPED) from None
        except Exception as error:
            # Typer handles its own exceptions: exits and usage errors.
            if debug or isinstance(error, typer.Exit) or hasattr(error, "format_message"):
                raise
            print_message(error_message(error))
            # A parameter out of range is a usage error.
            usage = type(error).__name__ == "InvalidParameterError"
            raise typer.Exit(USAGE if usage else FAILED) from None

    option = inspect.Parameter(
        "debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug
    )
    set_parameters(run, [*inspect.signature(command, eval_str=True).parameters.values(), option])
    return run


def import_jax() -> None:
    """Import JAX, and handle signals afterwards: an exception within its import can end the process."""
    with interrupts.deferred():
        import jax  # noqa: F401


def error_message(error: Exception) -> str:
    """Return one or two lines for an error: the cause and the fix."""
    text = "\n".join(str(error).strip().splitlines()[:2]).replace("n_components=", "-k ")
    if "RESOURCE_EXHAUSTED" in text:
        return (
            "the device is out of memory: give a smaller --batch-size, or fewer components with -k."
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"this needs {package_of(error.name)}: {install_command(error.name)}."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the system'}: {error.strerror}."
    if isinstance(error, MemoryError) and not text:
        return "out of memory: give a smaller --batch-size, or fewer components with -k."
    if isinstance(error, (ValueError, OSError, MemoryError, ModuleNotFoundError)) and text:
        return text
    kind = type(error).__name__
    return f"{kind}: {text}\nThis is unexpected: run again with --debug for the traceback, and report it."


@contextlib.contextmanager
def with_resume_hint(checkpoint: Path | None) -> Iterator[None]:
    """Add to an interruption of a fit how to resume it."""
    from eigengame.solver.passes.checkpoint import Interrupted

    try:
        yield
    except Interrupted as error:
        raise KeyboardInterrupt(f"{error}\n  {command_line()}") from None
    except KeyboardInterrupt:
        if checkpoint is None:
            raise KeyboardInterrupt(
                "stopped; nothing was saved: give --checkpoint FOLDER to be able to resume."
            ) from None
        raise KeyboardInterrupt(
            f"stopped between two passes; the finished passes are in {checkpoint}. To resume, run\n"
            f"  {command_line()}"
        ) from None


def command_line() -> str:
    """Return the command line of this process, quoted for a shell."""
    module = Path(sys.argv[0]).name == "__main__.py"
    program = ["python", "-m", "eigengame"] if module else ["eigengame"]
    return shlex.join([*program, *sys.argv[1:]])
