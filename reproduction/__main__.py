"""Command line: `python -m reproduction NAME...`, from the root of the repository."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from eigengame._system.compilation_cache import keep_compilations
from reproduction import EXPERIMENTS
from reproduction.base import Claim, Run

OUTPUT = Path("reproduction/output")
FAILED, STOPPED = 1, 130
"""Exit codes, as for `eigengame`; argparse uses 2 for wrong usage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen experiments and return an exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.list or not given.names:
        _list(given.json)
        return 0
    names = list(dict.fromkeys(EXPERIMENTS if "all" in given.names else given.names))
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        parser.error(
            f"unknown experiment {unknown[0]!r}: choose from {', '.join(EXPERIMENTS)}, all."
        )
    # Checked before minutes are spent on figures that could not be drawn.
    if find_spec("matplotlib") is None:
        return _fail("matplotlib is not installed: pip install 'eigengame[plots]'.")
    from reproduction.record import check_overwrite, make_folder, redraw, reproduce

    try:
        for name in names:
            if not (given.redraw or given.force):
                check_overwrite(given.out / name, quick=given.quick)
        make_folder(given.out)
    except ValueError as error:
        return _fail(str(error))
    with contextlib.suppress(OSError, RuntimeError):
        keep_compilations()

    def run(name: str) -> list[Claim]:
        if given.redraw:
            return redraw(given.out / name)
        return reproduce(name, given.out / name, Run(given.quick, _progress(name), given.data))

    try:
        claims, failed = _run_all(names, run)
    except KeyboardInterrupt:
        _say(f"stopped; finished experiments are in {given.out}.")
        return STOPPED
    _show(given.out, claims, failed, quick=given.quick, as_json=given.json)
    return FAILED if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run experiments of the paper. Each writes results.json, claims.json, figure.png and "
        "figure.svg into OUT/NAME; OUT/index.md shows all of them. If one fails, the others still run.",
        epilog="Needs matplotlib: pip install 'eigengame[plots]'.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="experiments to run, or all")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--quick", action="store_true", help="small sizes, as a smoke test")
    parser.add_argument(
        "-o", "--out", type=Path, default=OUTPUT, help="output folder (default: %(default)s)"
    )
    parser.add_argument(
        "--data",
        help="folder of data: MNIST, and for resnet and small-resnet weights and photographs "
        "(default: EIGENGAME_DATA, else OpenML for MNIST)",
    )
    parser.add_argument(
        "--redraw", action="store_true", help="update figures and claims from the results in OUT"
    )
    parser.add_argument(
        "--force", action="store_true", help="let a quick run overwrite the results of a full run"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _run_all(
    names: Sequence[str], run: Callable[[str], list[Claim]]
) -> tuple[dict[str, list[Claim]], dict[str, str]]:
    """Return the claims of the experiments that ran, and the error messages of the others."""
    claims, failed = {}, {}
    for name in names:
        try:
            claims[name] = run(name)
        except ModuleNotFoundError as error:
            failed[name] = f"{error.name} is not installed: pip install {error.name}."
        except (ValueError, OSError, ImportError) as error:
            failed[name] = str(error)
        if name in failed:
            _say(f"{name}: {failed[name]}")
    return claims, failed


def _list(as_json: bool) -> None:
    """Print all experiments."""
    if as_json:
        print(json.dumps({"experiments": dict(EXPERIMENTS)}))
        return
    for name, line in EXPERIMENTS.items():
        print(f"{name:<20} {line}")
    print("\nRun one by python -m reproduction NAME, or all by python -m reproduction all.")


def _show(
    out: Path, claims: dict[str, list[Claim]], failed: dict[str, str], *, quick: bool, as_json: bool
) -> None:
    """Write the page over all results in `out`, and print the claims."""
    from reproduction.page import page, verdict_table

    path = out / "index.md" if claims else None
    if path is not None:
        path.write_text(page(out))
    if as_json:
        facts = {name: [claim._asdict() for claim in found] for name, found in claims.items()}
        print(json.dumps({"claims": facts, "failed": failed, "page": path and str(path)}))
        return
    for name, found in claims.items():
        print(f"{name}: {out / name}")
        for claim in found:
            print(f"  {claim.verdict.value}: {claim.claim}")
            print(f"    Reading: {claim.reading}.\n    {claim.measured}")
    if path is not None:
        print(f"\n{verdict_table(claims, '{0}')}")
        if quick:
            print("Quick runs are too small for conclusions: docs/reproduction.md has full runs.")
        print(f"Written: {path}")


def _progress(name: str) -> Callable[[str], None]:
    """Return a progress function that prints the name, the elapsed time and a line."""
    begun = time.monotonic()
    return lambda line: _say(f"{name}, {time.monotonic() - begun:.0f} s: {line}")


def _say(text: str) -> None:
    """Print a message on stderr."""
    print(f"reproduction: {text}", file=sys.stderr, flush=True)


def _fail(text: str) -> int:
    """Print an error and return the exit code."""
    _say(text)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
