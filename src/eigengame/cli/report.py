"""`eigengame report`: write an HTML report on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eigengame.cli.data_options import DataOptions, open_for_model
from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.genotype_options import GenotypeOptions, align_genotypes
from eigengame.cli.options import Force, Json, ModelFile, option_group, parse_sizes
from eigengame.cli.output import print_json
from eigengame.cli.output_paths import check_output_path

EXAMPLES = (
    "eigengame report model.safetensors -o report.html",
    "eigengame report model.safetensors iris.csv --labels species --open",
    "eigengame report mnist.safetensors images.npy --labels digits.txt --image-shape 28x28",
    "eigengame report model.safetensors train.csv --overlay new.csv --ids name --time date",
)


@handle_errors
@option_group(GenotypeOptions, "genotypes")
@option_group(DataOptions, "data_options")
def report(
    model: ModelFile,
    data_options: DataOptions,
    genotypes: GenotypeOptions,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA", help="Rows for the scatter plot of scores.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The .html file to write. Default: named after MODEL."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|FILE",
            help="Row labels for the colours: a column of DATA, or a file.",
        ),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|FILE",
            help="Row ids, shown on hover. Default: those that DATA has (.fam, .h5ad, images).",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|FILE",
            help="Time of each row, as ISO 8601 or a number: scores can be shown over time.",
        ),
    ] = None,
    overlay: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="A second data set, projected and drawn over the first one."
        ),
    ] = None,
    overlay_ids: Annotated[
        str | None,
        typer.Option(metavar="COLUMN|FILE", help="Row ids of the overlay."),
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(metavar="HxW", help="Shape of a row if rows are images: 28x28, or 32x32x3."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a report on MODEL as one HTML file: variances, certificates, components, and rows of DATA.

    The file works offline, on phones and on wide screens.
    """
    target = Path(model.with_suffix(".html").name) if output is None else output
    check_output_path(target, (".html", ".htm"), force=force)
    shape = None if image_shape is None else parse_sizes(image_shape, "--image-shape")
    given = {"--labels": labels, "--ids": ids, "--time": time, "--overlay": overlay}
    for option, value in given.items():
        if value is not None and data is None:
            raise typer.BadParameter(
                f"{option.strip('-')} needs rows: give DATA too.", param_hint=option
            )
    if genotypes.given() and data is None:
        raise typer.BadParameter("give DATA too.", param_hint="--intersect or --ambiguous")
    if overlay_ids is not None and overlay is None:
        raise typer.BadParameter("give --overlay too.", param_hint="--overlay-ids")
    import_jax()
    from eigengame import EigenGamePCA
    from eigengame.cli.label_reader import Labels, read_labels
    from eigengame.report import write_report

    def values(option: str, name: str | None, rows: str | None) -> Labels | None:
        if name is None or rows is None:
            return None
        numbers = not option.endswith("ids")
        return read_labels(name, rows, data_options.header, option, numbers=numbers)

    def opened(rows: str | None) -> Any:
        if rows is None:
            return None
        return align_genotypes(open_for_model(rows, data_options, pca), pca, genotypes)

    pca = EigenGamePCA.load(model)
    write_report(
        pca,
        target,
        data=opened(data),
        labels=values("--labels", labels, data),
        ids=values("--ids", ids, data),
        time=values("--time", time, data),
        overlay=opened(overlay),
        overlay_ids=values("--overlay-ids", overlay_ids, overlay),
        overlay_name=None if overlay is None else Path(overlay).name,
        image_shape=shape,
        title=title,
    )
    if json:
        print_json({"model": model, "data": data, "output": target})
    else:
        print(f"Written: {target}")
    if open_:
        typer.launch(str(target))
