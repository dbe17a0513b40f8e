"""`eigengame report`: one HTML file to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.opening import Opening, opened_for_model
from eigengame.cli.options import Force, Json, ModelFile, grouped, whole_numbers
from eigengame.cli.running import guarded
from eigengame.cli.showing import show, show_json
from eigengame.cli.targets import refuse_target

EXAMPLES = (
    "eigengame report model.safetensors -o report.html",
    "eigengame report model.safetensors iris.csv --labels species --open",
    "eigengame report mnist.safetensors images.npy --labels digits.txt --image-shape 28x28",
)


@guarded
@grouped(Opening, "opening")
def report(
    model: ModelFile,
    opening: Opening,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Rows to place by their scores.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The .html file to write; named after MODEL."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="COLUMN|FILE", help="What to colour rows by."),
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(metavar="HxW", help="Where rows are images: 28x28, or 32x32x3."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="What the page is called.")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a report on MODEL as one HTML file: variances, certificates, components, and rows of DATA.

    It works offline, on a phone and on a wide screen.
    """
    target = Path(model.with_suffix(".html").name) if output is None else output
    refuse_target(target, (".html", ".htm"), force=force)
    shape = None if image_shape is None else whole_numbers(image_shape, "--image-shape")
    if labels is not None and data is None:
        raise typer.BadParameter("labels belong to rows: give DATA too.", param_hint="--labels")
    from eigengame import EigenGamePCA
    from eigengame.cli.labels import labels_of
    from eigengame.report import write_report

    pca = EigenGamePCA.load(model)
    write_report(
        pca,
        target,
        data=None if data is None else opened_for_model(data, opening, pca),
        labels=None if labels is None or data is None else labels_of(labels, data, opening.header),
        image_shape=shape,
        title=title,
    )
    if json:
        show_json({"model": model, "data": data, "output": target})
    else:
        show(f"Written: {target}")
    if open_:
        typer.launch(str(target))
