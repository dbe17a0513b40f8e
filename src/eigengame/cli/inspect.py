"""`eigengame inspect`: contents and origin of a model file."""

from __future__ import annotations

from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.options import Json, ModelFile
from eigengame.cli.output import model_summary, print_components, print_json, print_outcome

EXAMPLES = (
    "eigengame inspect model.safetensors",
    "eigengame inspect model.safetensors --json | jq .share",
)


@handle_errors
def inspect(model: ModelFile, json: Json = False) -> None:
    """Show the contents of a model file: components, their angle bounds, and the data of the fit."""
    import_jax()
    from eigengame import EigenGamePCA
    from eigengame.model_file import provenance

    pca = EigenGamePCA.load(model)
    origin = provenance(pca)
    if json:
        facts = {"model": model, "parameters": pca.get_params(), "provenance": origin}
        print_json(facts | model_summary(pca))
        return
    source = origin.get("source") or {}
    print(f"{model}: {pca.n_components_} components of {pca.n_features_in_} features")
    print(
        f"from {pca.n_samples_seen_:,} rows of {source.get('name', 'data')}, on {origin['written']}"
    )
    print_components(pca)
    print_outcome(pca)
