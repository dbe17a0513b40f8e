"""How a command runs: what goes wrong becomes a line or two and an exit code, no traceback."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 130
"""Exit codes: fine, could not do it, wrong usage, stopped by hand."""

Debug = Annotated[
    bool, typer.Option("--debug", help="Show where an error happened, with the whole traceback.")
]


def say(text: str) -> None:
    """Print a message for people: on stderr, never among results."""
    print(f"eigengame: {text}", file=sys.stderr, flush=True)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option --debug, its errors told in a line or two."""

    @functools.wraps(command)
    def run(*, debug: bool, **given: Any) -> None:
        try:
            with _terminated_as_interrupted():
                command(**given)
            sys.stdout.flush()
        except BrokenPipeError:
            # Who reads our output has had enough: leave nothing to be flushed at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as error:
            say(str(error) or "stopped.")
            raise typer.Exit(STOPPED) from None
        except Exception as error:
            # What typer raises, it also answers: exits and usage errors.
            if debug or isinstance(error, typer.Exit) or hasattr(error, "format_message"):
                raise
            say(told(error))
            raise typer.Exit(code_of(error)) from None

    option = inspect.Parameter(
        "debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug
    )
    with_parameters(run, [*inspect.signature(command, eval_str=True).parameters.values(), option])
    return run


def with_parameters(function: Any, parameters: list[inspect.Parameter]) -> None:
    """Make typer see these parameters, whatever the function itself takes."""
    function.__signature__ = inspect.Signature(
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    function.__annotations__ = {one.name: one.annotation for one in parameters}


def told(error: Exception) -> str:
    """Return an error as a line or two: what was seen, and what to do."""
    text = "\n".join(str(error).strip().splitlines()[:2]).replace("n_components=", "-k ")
    if "RESOURCE_EXHAUSTED" in text:
        return (
            "the device is out of memory: give a smaller --batch-size, or fewer components by -k."
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.split(".")[0]
        return f"{package} is needed for this: pip install {package}."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the system'}: {error.strerror}."
    if isinstance(error, MemoryError) and not text:
        return "out of memory: give a smaller --batch-size, or fewer components by -k."
    if isinstance(error, (ValueError, OSError, MemoryError, ModuleNotFoundError)) and text:
        return text
    kind = type(error).__name__
    return f"{kind}: {text}\nThis was not expected: run again with --debug to see where, and report it."


def code_of(error: Exception) -> int:
    """Return the exit code of an error: an option out of its range is wrong usage."""
    return USAGE if type(error).__name__ == "InvalidParameterError" else FAILED


def keep_compiled() -> None:
    """Keep what is compiled for the next command, where there is a place for it."""
    from eigengame._system.compilation_cache import keep_compilations

    with contextlib.suppress(OSError, RuntimeError):
        keep_compilations()


@contextlib.contextmanager
def stoppable(checkpoint: Path | None) -> Iterator[None]:
    """Say how to go on with a fit that Ctrl-C or SIGTERM ends."""
    from eigengame.solver.checkpoint import Interrupted

    try:
        yield
    except Interrupted as error:
        raise KeyboardInterrupt(f"{error}\n  {this_command()}") from None
    except KeyboardInterrupt:
        if checkpoint is None:
            raise KeyboardInterrupt(
                "stopped, and nothing was saved: give --checkpoint FOLDER to be able to go on."
            ) from None
        raise KeyboardInterrupt(
            f"stopped between two passes; those made are in {checkpoint}: to go on, run\n  {this_command()}"
        ) from None


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Turn SIGTERM into KeyboardInterrupt for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def this_command() -> str:
    """Return what was typed, to be typed again."""
    module = Path(sys.argv[0]).name == "__main__.py"
    program = ["python", "-m", "eigengame"] if module else ["eigengame"]
    return shlex.join([*program, *sys.argv[1:]])
