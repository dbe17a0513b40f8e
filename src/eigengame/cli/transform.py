"""`eigengame transform`: write the scores of data on a model's components."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.data_options import DataOptions, open_for_model
from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.genotype_options import GenotypeOptions, align_genotypes, shrinkage_of
from eigengame.cli.options import Data, Force, Json, ModelFile, Quiet, option_group
from eigengame.cli.output import print_json
from eigengame.cli.output_paths import check_output_path, data_stem
from eigengame.cli.progress_display import with_row_count

EXAMPLES = (
    "eigengame transform model.safetensors new.npy -o scores.npy",
    "eigengame transform model.safetensors new.parquet -o scores.parquet",
    "eigengame transform model.safetensors images.zarr --key test -o scores.zarr",
    "eigengame transform cells.safetensors cells.h5ad -o cells-pca.h5ad",
    "eigengame transform reference.safetensors cohort.bed --intersect -o cohort.eigenvec",
)


@handle_errors
@option_group(GenotypeOptions, "genotypes")
@option_group(DataOptions, "data_options")
def transform(
    model: ModelFile,
    data: Data,
    data_options: DataOptions,
    genotypes: GenotypeOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The .npy, .csv, .tsv, .parquet, .zarr, .eigenvec or .h5ad file to write. Default: "
            "DATA-scores.npy.",
        ),
    ] = None,
    obsm: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Name of the scores in an .h5ad file. Default: X_pca."),
    ] = None,
    correct_shrinkage: Annotated[
        bool,
        typer.Option(
            "--correct-shrinkage",
            help="Divide scores by the expected shrinkage: for rows that are not in the fit, if features "
            "outnumber rows.",
        ),
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the scores of DATA on the components of MODEL, one row of scores per row of data.

    Rows are prepared as in the fit. Data is read and scores are written block by block. Tables begin with the ids
    of the rows, if DATA has ids (.fam, .h5ad, 10x .h5, images). Genotypes are aligned with the SNPs of MODEL.

    An .h5ad file is a copy of DATA with the scores in obsm, if DATA is such a file; otherwise a new file with the
    ids of the rows and the scores.
    """
    from eigengame.cli.h5ad_writer import ENDING, KEY, check_key, write_obsm
    from eigengame.cli.score_writer import TABLES, WRITERS, block_rows, write_scores

    target = Path(f"{data_stem(data)}-scores.npy") if output is None else output
    check_output_path(target, (*WRITERS, ENDING), force=force)
    key = None
    if target.suffix == ENDING:
        key = KEY if obsm is None else obsm
        check_key(data, key, force=force)
    elif obsm is not None:
        raise ValueError(f"--obsm {obsm} is for .h5ad files: give such a name with -o.")
    import_jax()
    from eigengame import EigenGamePCA

    pca = EigenGamePCA.load(model)
    source = align_genotypes(open_for_model(data, data_options, pca), pca, genotypes)
    ids = source.id_columns() if target.suffix in (*TABLES, ENDING) else {}
    if target.suffix == ".eigenvec" and not ids:
        raise ValueError(
            f"{target}: {data} has no ids of its rows, which this format needs: write .tsv."
        )
    factors = shrinkage_of(pca, source) if correct_shrinkage else None
    blocks = pca.transform_blocks(source, block_rows(source.shape[1]))
    if factors is not None:
        blocks = (block / factors.astype(block.dtype) for block in blocks)
    with with_row_count(blocks, source.shape[0], quiet) as counted:
        if key is None:
            rows = write_scores(target, counted, pca.n_components_, ids)
        else:
            rows = write_obsm(target, counted, pca.n_components_, data=data, ids=ids, key=key)
    if json:
        facts = {"model": model, "data": data, "output": target, "ids": list(ids)}
        alignment = getattr(source, "alignment", None)
        facts["shrinkage"] = None if factors is None else factors.tolist()
        facts["alignment"] = None if alignment is None else alignment.counts()
        print_json(facts | {"rows": rows, "components": pca.n_components_})
        return
    print(f"Written: {target}, {rows:,} rows of {pca.n_components_} scores")
