"""`eigengame transform`: write the scores of data on a model's components."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.data_options import DataOptions, open_for_model
from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.options import Data, Force, Json, ModelFile, Quiet, option_group
from eigengame.cli.output import print_json
from eigengame.cli.output_paths import check_output_path, data_stem
from eigengame.cli.progress_display import with_row_count

EXAMPLES = (
    "eigengame transform model.safetensors new.npy -o scores.npy",
    "eigengame transform model.safetensors new.parquet -o scores.parquet",
    "eigengame transform model.safetensors images.zarr --key test -o scores.zarr",
)


@handle_errors
@option_group(DataOptions, "data_options")
def transform(
    model: ModelFile,
    data: Data,
    data_options: DataOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The .npy, .parquet, .zarr or .csv file to write. Default: DATA-scores.npy.",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the scores of DATA on the components of MODEL, one row of scores per row of data.

    Rows are prepared as in the fit. Data is read and scores are written block by block.
    """
    from eigengame.cli.score_writer import WRITERS, block_rows, write_scores

    target = Path(f"{data_stem(data)}-scores.npy") if output is None else output
    check_output_path(target, tuple(WRITERS), force=force)
    import_jax()
    from eigengame import EigenGamePCA

    pca = EigenGamePCA.load(model)
    source = open_for_model(data, data_options, pca)
    blocks = pca.transform_blocks(source, block_rows(source.shape[1]))
    with with_row_count(blocks, source.shape[0], quiet) as counted:
        rows = write_scores(target, counted, pca.n_components_)
    if json:
        facts = {"model": model, "data": data, "output": target}
        print_json(facts | {"rows": rows, "components": pca.n_components_})
        return
    print(f"Written: {target}, {rows:,} rows of {pca.n_components_} scores")
