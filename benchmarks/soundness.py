"""Compare certificates with the true components on hostile problems.

python -m benchmarks.soundness [--problems 7] [--each N] [--seed 0] [--family NAME,...] [--out FILE]

For every component of a fit whose certificate is of the kind "certified", the true angle between the stored
component and the true eigenvector must be at most the stated bound; for every cluster, the same for spans. The
true components are those of the rows as given, computed in float64 where the error is far below the bound
(`quick_truth.py`), else to 50 digits, and every violation is computed a second time by another method
(`exact_eigen.py`). The exit code is 1 when there are more violations than the stated probability allows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.hostile_families import FAMILIES
from benchmarks.hostile_orders import ORDERS
from benchmarks.hostile_problems import SETTINGS, draw_problems
from benchmarks.hostile_routes import (
    MESH_ROUTES,
    ROUTES,
    Attempt,
    attempt,
    attempts_in_child,
    routes_for,
)
from benchmarks.soundness_score import Case, case_of, rate
from benchmarks.soundness_table import page, totals

OUT = Path(__file__).parent / "results" / "soundness.md"


def cases_of(
    problems: int,
    seed: int = 0,
    families: Sequence[str] = tuple(FAMILIES),
    routes: Sequence[str] = (*ROUTES, *MESH_ROUTES),
    settings: Sequence[str] = tuple(SETTINGS),
    orders: Sequence[str] = tuple(ORDERS),
    each: int | None = None,
) -> Iterator[Case]:
    """Yield every problem on every route, compared with the true components.

    Parameters
    ----------
    problems : int
        Problems of each family, over the settings in turn.
    seed : int
        Other seeds draw other problems.
    families, routes, settings, orders : sequences of str
        Names from `FAMILIES`, `ROUTES` or `MESH_ROUTES`, `SETTINGS`, and `ORDERS`.
    each : int, optional
        Number of routes for each problem, chosen at random; by default all of them.
    """
    everything = draw_problems(seed, families, settings, problems, orders)
    meshed = [
        (problem, route)
        for problem in everything
        for route in routes_for(problem, routes, each)
        if route in MESH_ROUTES
    ]
    on_mesh: dict[int, list[tuple[str, Attempt]]] = {}
    for (problem, route), found in zip(meshed, attempts_in_child(meshed), strict=True):
        on_mesh.setdefault(id(problem), []).append((route, found))
    for problem in everything:
        own = replace(problem)  # a copy, so that its rows and true components are freed after use
        for route in routes_for(problem, routes, each):
            if route not in MESH_ROUTES:
                # At these sizes one thread is faster than several.
                with threadpool_limits(1, user_api="blas"):
                    case = case_of(own, route, attempt(own, route))
                yield case
        for route, found in on_mesh.get(id(problem), ()):
            with threadpool_limits(1, user_api="blas"):
                case = case_of(own, route, found)
            yield case


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the harness, write the table and return the exit code."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    cases: list[Case] = []
    options.out.parent.mkdir(parents=True, exist_ok=True)
    chosen = options.problems, options.seed, options.family, options.route
    made = cases_of(*chosen, options.setting, options.order, options.each)
    if options.processes > 1:
        made = _in_processes(options)
    for case in made:
        cases.append(case)
        if len(cases) % 100 == 0:
            seconds = time.monotonic() - began
            print(f"{len(cases)} fits, {seconds:.0f} s, at {case.family}", file=sys.stderr)
            options.out.write_text(page(cases, f"{len(cases)} fits so far."))
    drawn = len({(case.family, case.setting, case.order, case.index) for case in cases})
    routes = "every route" if options.each is None else f"{options.each} routes"
    each = "" if options.each is None else f" --each {options.each}"
    command = (
        f"python -m benchmarks.soundness --problems {options.problems}{each} --seed {options.seed}"
    )
    title = (
        f"{len(cases)} fits of {drawn} problems: {options.problems} of each of {len(options.family)} families, "
        f"{routes} for each. Made by `{command}`; columns are explained in `benchmarks/README.md`."
    )
    options.out.write_text(page(cases, title))
    print(totals(cases))
    print(f"\nThe tables are in {options.out}.")
    return int(rate(cases).exceeded)


def _in_processes(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the same cases as one process, each family in a process of its own."""
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for cases in pool.map(partial(_of_family, options), options.family):
            yield from cases


def _of_family(options: argparse.Namespace, family: str) -> list[Case]:
    """Return all cases of a family."""
    chosen = options.problems, options.seed, (family,), options.route
    return list(cases_of(*chosen, options.setting, options.order, options.each))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmarks.soundness", description=__doc__.splitlines()[0])
    every_route = (*ROUTES, *MESH_ROUTES)
    parser.add_argument("--problems", type=int, default=7, help="problems of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--each", type=int, help="routes for each problem, chosen at random (default: all)"
    )
    for name, known in (
        ("family", tuple(FAMILIES)),
        ("route", every_route),
        ("setting", tuple(SETTINGS)),
        ("order", tuple(ORDERS)),
    ):
        parser.add_argument(
            f"--{name}",
            type=partial(_names, known),
            default=known,
            help=f"comma-separated, of {', '.join(known)}",
        )
    parser.add_argument("--processes", type=int, default=1, help="families in parallel")
    parser.add_argument("--out", type=Path, default=OUT)
    return parser


def _names(known: Sequence[str], text: str) -> tuple[str, ...]:
    """Return comma-separated names, all of which must be known."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{unknown or text!r}: use names of {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
