"""`eigengame report`: write an HTML report on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.data_options import DataOptions, open_for_model
from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.options import Force, Json, ModelFile, option_group, parse_sizes
from eigengame.cli.output import print_json
from eigengame.cli.output_paths import check_output_path

EXAMPLES = (
    "eigengame report model.safetensors -o report.html",
    "eigengame report model.safetensors iris.csv --labels species --open",
    "eigengame report mnist.safetensors images.npy --labels digits.txt --image-shape 28x28",
)


@handle_errors
@option_group(DataOptions, "data_options")
def report(
    model: ModelFile,
    data_options: DataOptions,
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
    if labels is not None and data is None:
        raise typer.BadParameter("labels need rows: give DATA too.", param_hint="--labels")
    import_jax()
    from eigengame import EigenGamePCA
    from eigengame.cli.label_reader import read_labels
    from eigengame.report import write_report

    pca = EigenGamePCA.load(model)
    write_report(
        pca,
        target,
        data=None if data is None else open_for_model(data, data_options, pca),
        labels=None
        if labels is None or data is None
        else read_labels(labels, data, data_options.header),
        image_shape=shape,
        title=title,
    )
    if json:
        print_json({"model": model, "data": data, "output": target})
    else:
        print(f"Written: {target}")
    if open_:
        typer.launch(str(target))
