"""`eigengame certify`: measure the accuracy of a model's components on data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.data_options import DataOptions, open_for_model
from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.fitting import use_compilation_cache
from eigengame.cli.options import Data, Force, Json, ModelFile, Quiet, option_group
from eigengame.cli.output import model_summary, print_components, print_json
from eigengame.cli.output_paths import check_output_path
from eigengame.cli.progress_display import make_watchers

EXAMPLES = (
    "eigengame certify model.safetensors data.npy",
    "eigengame certify model.safetensors data.npy -o certified.safetensors",
)


@handle_errors
@option_group(DataOptions, "data_options")
def certify(
    model: ModelFile,
    data: Data,
    data_options: DataOptions,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Also write the model with the new certificate."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure the components of MODEL on DATA, and bound the angle of each to the true component.

    Reads the data at most five times, in float64. The bounds do not depend on how the model was fitted.
    """
    if output is not None:
        check_output_path(output, (".safetensors",), force=force)
    import_jax()
    from eigengame import EigenGamePCA

    use_compilation_cache()
    pca = EigenGamePCA.load(model)
    pca.certify(open_for_model(data, data_options, pca), progress=make_watchers(quiet))
    if output is not None:
        pca.save(output)
    if json:
        print_json({"model": model, "data": data, "output": output} | model_summary(pca))
        return
    print_components(pca)
    if output is not None:
        print(f"Written: {output}")
