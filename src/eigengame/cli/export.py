"""`eigengame export`: write the components of a model for other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.options import Force, Json, ModelFile
from eigengame.cli.output import print_json
from eigengame.cli.output_paths import check_output_path

EXAMPLES = (
    "eigengame export model.safetensors -o model.npz",
    "eigengame export model.safetensors -o projector.pt",
    "eigengame export model.safetensors --whiten -o whitener.pt",
    "eigengame export model.safetensors -o pca.joblib",
)

ENDINGS = (".npz", ".pt", ".joblib")


@handle_errors
def export(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file to write: .npz (arrays), .pt (a torch state dict) or .joblib (scikit-learn). Default: "
            "MODEL.npz.",
        ),
    ] = None,
    whiten: Annotated[
        bool | None,
        typer.Option(
            "--whiten/--no-whiten",
            help="Whether scores have unit variance. Default: as in the fit.",
            show_default=False,
        ),
    ] = None,
    prepared: Annotated[
        bool,
        typer.Option(
            "--prepared", help="Export a model of prepared data, without the preparation."
        ),
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the components of MODEL to a file for NumPy, torch or scikit-learn.

    Scores are x @ weight.T + bias in .npz and .pt files; the latter fit torch.nn.Linear. A .joblib file is a pickle
    of a fitted sklearn.decomposition.PCA.
    """
    target = model.with_suffix(".npz") if output is None else output
    check_output_path(target, ENDINGS, force=force)
    import_jax()
    from eigengame import EigenGamePCA

    pca = EigenGamePCA.load(model)
    if whiten is not None:
        pca.set_params(whiten=whiten)
    pca.export(target, prepared=prepared)
    if json:
        shape = [pca.n_components_, pca.n_features_in_]
        print_json({"model": model, "output": target, "shape": shape, "whiten": pca.whiten})
        return
    print(f"Written: {target}, {pca.n_components_} components of {pca.n_features_in_} features")
