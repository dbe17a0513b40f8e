"""`eigengame inspect`: what a model file holds, and where it comes from."""

from __future__ import annotations

from eigengame.cli.options import Json, ModelFile
from eigengame.cli.running import guarded
from eigengame.cli.showing import facts_of, show, show_components, show_ending, show_json

EXAMPLES = (
    "eigengame inspect model.safetensors",
    "eigengame inspect model.safetensors --json | jq .share",
)


@guarded
def inspect(model: ModelFile, json: Json = False) -> None:
    """Show what a model holds: components, how far to trust them, and where they come from."""
    from eigengame import EigenGamePCA
    from eigengame.model_file import provenance

    pca = EigenGamePCA.load(model)
    origin = provenance(pca)
    if json:
        facts = {"model": model, "parameters": pca.get_params(), "provenance": origin}
        show_json(facts | facts_of(pca))
        return
    source = origin.get("source") or {}
    show(f"{model}: {pca.n_components_} components of {pca.n_features_in_} features")
    show(
        f"from {pca.n_samples_seen_:,} rows of {source.get('name', 'data')}, on {origin['written']}"
    )
    show_components(pca)
    show_ending(pca)
