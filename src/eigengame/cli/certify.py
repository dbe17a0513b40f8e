"""`eigengame certify`: how far to trust a model's components, measured on data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.opening import Opening, opened_for_model
from eigengame.cli.options import Data, Force, Json, ModelFile, Quiet, grouped
from eigengame.cli.running import guarded, keep_compiled
from eigengame.cli.showing import facts_of, show, show_components, show_json
from eigengame.cli.targets import refuse_target
from eigengame.cli.watching import watchers

EXAMPLES = (
    "eigengame certify model.safetensors data.npy",
    "eigengame certify model.safetensors data.npy -o certified.safetensors",
)


@guarded
@grouped(Opening, "opening")
def certify(
    model: ModelFile,
    data: Data,
    opening: Opening,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the model with this certificate, too."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure the components of MODEL on DATA, and bound the angle of each to the true one.

    Reads the data at most five times, in float64. Nothing about the fit is assumed.
    """
    if output is not None:
        refuse_target(output, (".safetensors",), force=force)
    from eigengame import EigenGamePCA

    keep_compiled()
    pca = EigenGamePCA.load(model)
    pca.certify(opened_for_model(data, opening, pca), progress=watchers(quiet))
    if output is not None:
        pca.save(output)
    if json:
        show_json({"model": model, "data": data, "output": output} | facts_of(pca))
        return
    show_components(pca)
    if output is not None:
        show(f"Written: {output}")
