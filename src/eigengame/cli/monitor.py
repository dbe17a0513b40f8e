"""`eigengame monitor`: T2, squared prediction error and alarms of rows under a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.data_options import DataOptions, open_for_model
from eigengame.cli.errors import handle_errors, import_jax, print_message
from eigengame.cli.options import Data, Force, Json, ModelFile, Quiet, option_group
from eigengame.cli.output import print_json, print_table
from eigengame.cli.output_paths import check_output_path
from eigengame.cli.progress_display import with_row_count

EXAMPLES = (
    "eigengame monitor model.safetensors new.csv",
    "eigengame monitor model.safetensors new.csv -o alarms.csv --page alarms.html",
    "eigengame monitor model.safetensors new.csv --limits-from normal.csv --confidence 0.999",
)


@handle_errors
@option_group(DataOptions, "data_options")
def monitor(
    model: ModelFile,
    data: Data,
    data_options: DataOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Also write the statistics of all rows: a .csv or .tsv file."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Also write an .html page with charts of both statistics."),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(help="Probability that a statistic of a normal row is within its limit."),
    ] = 0.99,
    limits_from: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Rows of normal operation, from which the limits are taken. Default: theoretical limits.",
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="An earlier model: print the angles of the components to it."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Features to name for each alarm.")] = 3,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare the rows of DATA with MODEL: print Hotelling's T2 and squared prediction error (SPE) of unusual rows.

    Rows are prepared as in the fit and read block by block. An alarm is a statistic above its limit; the features
    that contribute most to it are named. MODEL is not changed.
    """
    if output is not None:
        check_output_path(output, (".csv", ".tsv"), force=force)
    if page is not None:
        check_output_path(page, (".html", ".htm"), force=force)
    import_jax()
    from eigengame import EigenGamePCA
    from eigengame.cli.monitor_writer import monitor_rows
    from eigengame.report.monitor_page import write_monitor_page

    pca = EigenGamePCA.load(model)
    source = open_for_model(data, data_options, pca)
    normal = None if limits_from is None else open_for_model(limits_from, data_options, pca)
    limits = pca.control_limits(normal, confidence=confidence)
    earlier = None if reference is None else EigenGamePCA.load(reference)
    blocks = pca.monitor_blocks(source, limits=limits, reference=earlier)
    with with_row_count(blocks, source.shape[0], quiet) as counted:
        found = monitor_rows(counted, source.id_columns(), output, top)
    if page is not None:
        write_monitor_page(
            page,
            found.t2,
            found.spe,
            limits,
            worst=found.worst,
            notes=found.notes,
            title=f"Monitoring of {Path(data).name}",
        )
    t2_alarms, spe_alarms = found.t2 > limits.t2, found.spe > limits.spe
    if json:
        facts = {
            "model": model,
            "data": data,
            "output": output,
            "page": page,
            "rows": len(found.t2),
        }
        print_json(
            facts
            | {
                "limits": vars(limits),
                "t2_alarms": t2_alarms.nonzero()[0],
                "spe_alarms": spe_alarms.nonzero()[0],
                "skipped": int((found.t2 != found.t2).sum()),
                "worst": [one._asdict() for one in found.worst],
                "angles": found.angles,
                "subspace_angle": found.subspace_angle,
                "notes": found.notes,
            }
        )
        return
    if found.worst:
        print_table(
            ("row", "T2", "SPE", "features that contribute most"),
            [(one.name, f"{one.t2:.4g}", f"{one.spe:.4g}", one.features) for one in found.worst],
        )
    alarms = int((t2_alarms | spe_alarms).sum())
    shown = f"; the {len(found.worst)} largest are shown" if alarms > len(found.worst) else ""
    print(
        f"{len(found.t2):,} rows, {alarms:,} with an alarm (T2 {int(t2_alarms.sum()):,}, SPE "
        f"{int(spe_alarms.sum()):,}{shown})."
    )
    print(f"Limits: {limits}.")
    if found.angles is not None:
        angles = ", ".join(f"{one:.2g}" for one in found.angles[:8])
        more = ", ..." if len(found.angles) > 8 else ""
        print(
            f"Angles since {reference}: {angles}{more} rad; of the span {found.subspace_angle:.2g} rad."
        )
    for target in (output, page):
        if target is not None:
            print(f"Written: {target}")
    for note in found.notes:
        print_message(note)
