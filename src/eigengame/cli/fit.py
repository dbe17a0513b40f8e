"""`eigengame fit`: data in, a model file out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.game import Game
from eigengame.cli.hosting import ending_together, joined
from eigengame.cli.keeping import Components, Keeping, Output, fitted
from eigengame.cli.opening import Opening, Preparing, opened_for_fit
from eigengame.cli.options import Data, Force, Json, Quiet, component_count, grouped
from eigengame.cli.running import guarded, stoppable
from eigengame.cli.showing import facts_of, show, show_components, show_ending, show_json
from eigengame.cli.targets import refuse_target, stem_of

EXAMPLES = (
    "eigengame fit digits.npy -k 16",
    "eigengame fit table.csv -k 8 --columns height,weight,age --scale two-pass --tol 0.01",
    "eigengame fit cells.h5ad -k 50 --counts log-normalise --checkpoint run/ -o cells.safetensors",
)

HOSTS = "Several processes"


@guarded
@grouped(Preparing, "preparing")
@grouped(Opening, "opening")
@grouped(Keeping, "keeping")
@grouped(Game, "game")
def fit(
    data: Data,
    game: Game,
    keeping: Keeping,
    opening: Opening,
    preparing: Preparing,
    components: Components = None,
    output: Output = None,
    force: Force = False,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit together with other processes that run this command: auto under Slurm, Open MPI or "
            "Kubernetes, or the address of process 0, such as 10.0.0.1:9911.",
            rich_help_panel=HOSTS,
        ),
    ] = None,
    host_count: Annotated[
        int | None, typer.Option(min=1, help="How many processes.", rich_help_panel=HOSTS)
    ] = None,
    host_index: Annotated[
        int | None, typer.Option(min=0, help="Which one this is, from 0.", rich_help_panel=HOSTS)
    ] = None,
    host_wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1, help="How long to wait for all.", rich_help_panel=HOSTS
        ),
    ] = 120.0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the principal components of DATA, and write them to a model file.

    One pass by default. With --tol it reads on until every component is certified to that angle.
    """
    k = None if components is None else component_count(components)
    target = Path(f"{stem_of(data)}.safetensors") if output is None else output
    refuse_target(target, (".safetensors",), force=force)
    first = hosts is None or joined(hosts, host_count, host_index, host_wait)
    source = opened_for_fit(data, opening, preparing)
    began = time.perf_counter()
    with stoppable(keeping.checkpoint), ending_together(hosts):
        pca = fitted(source, k, game, keeping, keeping.watchers(quiet) if first else False)
    if not first:
        return
    pca.save(target)
    if json:
        seconds = time.perf_counter() - began
        show_json({"data": data, "output": target, "seconds": seconds} | facts_of(pca))
        return
    show_components(pca)
    show_ending(pca)
    show(f"Written: {target}")
