"""`eigengame merge`: one model that has seen what several have."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.options import Force, Json
from eigengame.cli.running import guarded
from eigengame.cli.showing import facts_of, show, show_components, show_ending, show_json
from eigengame.cli.targets import refuse_target

EXAMPLES = (
    "eigengame merge monday.safetensors tuesday.safetensors -o week.safetensors",
    "eigengame merge shard-*.safetensors -o all.safetensors",
)


@guarded
def merge(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL MODEL...", help="Two models or more, fitted alike."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The .safetensors file to write.")],
    force: Force = False,
    json: Json = False,
) -> None:
    """Merge models of parts of the data, such as days or shards, into a model of all of it.

    All must be fitted by the remembered game, with the same options, on the same features. Features are aligned by
    name where the models have names.
    """
    if len(models) < 2:
        raise typer.BadParameter("give two models or more.", param_hint="MODEL")
    refuse_target(output, (".safetensors",), force=force)
    from eigengame import EigenGamePCA
    from eigengame.model_file import ModelFileError

    merged = EigenGamePCA.load(models[0])
    for path in models[1:]:
        try:
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always", UserWarning)
                merged = merged.merge(EigenGamePCA.load(path))
        except ModelFileError:
            raise
        except ValueError as error:
            raise ValueError(f"{path} cannot be merged with {models[0]}: {error}") from None
        for one in given:
            print(f"Warning: {path} and {models[0]}: {one.message}", file=sys.stderr)
    merged._source = {"name": " + ".join(map(str, models))}
    merged.save(output)
    if json:
        show_json({"output": output, "models": models} | facts_of(merged))
        return
    show_components(merged)
    show_ending(merged)
    show(f"Written: {output}")
