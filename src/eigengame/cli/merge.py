"""`eigengame merge`: combine models that were fitted to parts of the data."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.options import Force, Json
from eigengame.cli.output import model_summary, print_components, print_json, print_outcome
from eigengame.cli.output_paths import check_output_path

EXAMPLES = (
    "eigengame merge monday.safetensors tuesday.safetensors -o week.safetensors",
    "eigengame merge shard-*.safetensors -o all.safetensors",
)


@handle_errors
def merge(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL MODEL...", help="Two or more models with the same options."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The .safetensors file to write.")],
    force: Force = False,
    json: Json = False,
) -> None:
    """Merge models of parts of the data, such as days or shards, into one model of all of it.

    All models must be fitted by auto, exact or remembered, with the same number of components, centring and
    forgetting, on the same features. These are aligned by name if the models have feature names. With the same
    --seed the merged model has bounds.
    """
    if len(models) < 2:
        raise typer.BadParameter("give two or more models.", param_hint="MODEL")
    check_output_path(output, (".safetensors",), force=force)
    import_jax()
    from eigengame import EigenGamePCA
    from eigengame.model_file import ModelFileError

    merged = EigenGamePCA.load(models[0])
    for path in models[1:]:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                merged = merged.merge(EigenGamePCA.load(path))
        except ModelFileError:
            raise
        except ValueError as error:
            raise ValueError(f"{path} cannot be merged with {models[0]}: {error}") from None
        for warning in caught:
            print(f"Warning: {path} and {models[0]}: {warning.message}", file=sys.stderr)
    merged._source = {"name": " + ".join(Path(model).name for model in models)}
    merged.save(output)
    if json:
        print_json({"output": output, "models": models} | model_summary(merged))
        return
    print_components(merged)
    print_outcome(merged)
    print(f"Written: {output}")
