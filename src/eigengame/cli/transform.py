"""`eigengame transform`: the scores of data on a model's components."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.opening import Opening, opened_for_model
from eigengame.cli.options import Data, Force, Json, ModelFile, Quiet, grouped
from eigengame.cli.running import guarded
from eigengame.cli.showing import show, show_json
from eigengame.cli.targets import refuse_target, stem_of
from eigengame.cli.watching import counted

EXAMPLES = (
    "eigengame transform model.safetensors new.npy -o scores.npy",
    "eigengame transform model.safetensors new.parquet -o scores.parquet",
    "eigengame transform model.safetensors images.zarr --key test -o scores.zarr",
)


@guarded
@grouped(Opening, "opening")
def transform(
    model: ModelFile,
    data: Data,
    opening: Opening,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="A .npy, .parquet, .zarr or .csv to write; DATA-scores.npy by default.",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the scores of DATA on the components of MODEL, a row for each row.

    Rows are prepared as those of the fit were. They are read, and scores written, block by block.
    """
    from eigengame.cli.scores import WRITERS, block_rows, write_scores

    target = Path(f"{stem_of(data)}-scores.npy") if output is None else output
    refuse_target(target, tuple(WRITERS), force=force)
    from eigengame import EigenGamePCA

    pca = EigenGamePCA.load(model)
    source = opened_for_model(data, opening, pca)
    blocks = pca.transform_blocks(source, block_rows(source.shape[1]))
    with counted(blocks, source.shape[0], quiet) as given:
        rows = write_scores(target, given, pca.n_components_)
    if json:
        facts = {"model": model, "data": data, "output": target}
        show_json(facts | {"rows": rows, "components": pca.n_components_})
        return
    show(f"Written: {target}, {rows:,} rows of {pca.n_components_} scores")
