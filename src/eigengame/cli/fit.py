"""`eigengame fit`: fit data and write a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from eigengame._system import interrupts
from eigengame.cli.data_options import DataOptions, PreparationOptions, open_for_fit
from eigengame.cli.errors import handle_errors, import_jax, with_resume_hint
from eigengame.cli.estimator_options import EstimatorOptions
from eigengame.cli.fitting import Components, Output, RunOptions, fit_source
from eigengame.cli.multihost import exit_if_host_lost, join_hosts
from eigengame.cli.options import (
    Data,
    Force,
    FullPaths,
    Json,
    Quiet,
    option_group,
    options_in_panel,
    parse_component_count,
)
from eigengame.cli.output import model_summary, print_components, print_json, print_outcome
from eigengame.cli.output_paths import check_output_path, data_stem

EXAMPLES = (
    "eigengame fit digits.npy -k 16",
    "eigengame fit table.csv -k 8 --columns height,weight,age --scale two-pass --tol 0.01",
    "eigengame fit sst.nc -k 4 --variable sst --dim time --feature-weights coslat",
    "eigengame fit cells.h5ad -k 50 --counts log-normalise --checkpoint run/ -o cells.safetensors",
)

_host_option = options_in_panel("Several processes")


@handle_errors
@option_group(PreparationOptions, "preparation")
@option_group(DataOptions, "data_options")
@option_group(RunOptions, "run")
@option_group(EstimatorOptions, "estimator")
def fit(
    data: Data,
    estimator: EstimatorOptions,
    run: RunOptions,
    data_options: DataOptions,
    preparation: PreparationOptions,
    components: Components = None,
    output: Output = None,
    force: Force = False,
    hosts: Annotated[
        str | None,
        _host_option(
            metavar="ADDRESS",
            help="Share the fit with other processes that run the same command: auto under Slurm, Open MPI or "
            "Kubernetes, or the address of process 0, such as 10.0.0.1:9911.",
        ),
    ] = None,
    host_count: Annotated[int | None, _host_option(min=1, help="Number of processes.")] = None,
    host_index: Annotated[
        int | None, _host_option(min=0, help="Index of this process, from 0.")
    ] = None,
    host_wait: Annotated[
        float,
        _host_option(metavar="SECONDS", min=1, help="Time to wait for all processes to connect."),
    ] = 120.0,
    full_paths: FullPaths = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the principal components of DATA, and write them to a model file.

    Makes passes until every component is certified to 0.05 rad, or to the angle of --tol. --passes 1 makes one.
    """
    k = None if components is None else parse_component_count(components)
    target = Path(f"{data_stem(data)}.safetensors") if output is None else output
    check_output_path(target, (".safetensors",), force=force)
    import_jax()
    is_first = hosts is None or join_hosts(hosts, host_count, host_index, host_wait)
    source = open_for_fit(data, data_options, preparation)
    began = time.perf_counter()
    with with_resume_hint(run.checkpoint), exit_if_host_lost(hosts):
        progress = run.watchers(quiet) if is_first else False
        pca = fit_source(source, k, estimator, run, progress)
        interrupts.check()
    if not is_first:
        return
    pca.save(target, full_paths=full_paths)
    if json:
        seconds = time.perf_counter() - began
        print_json({"data": data, "output": target, "seconds": seconds} | model_summary(pca))
        return
    print_components(pca)
    print_outcome(pca)
    print(f"Written: {target}")
