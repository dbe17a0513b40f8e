"""`eigengame compare`: how far two models are from each other."""

from __future__ import annotations

from eigengame.cli.options import Json, ModelFile
from eigengame.cli.running import guarded
from eigengame.cli.showing import show, show_json, show_table

EXAMPLES = (
    "eigengame compare one-pass.safetensors refined.safetensors",
    "eigengame compare monday.safetensors tuesday.safetensors --json",
)


@guarded
def compare(first: ModelFile, second: ModelFile, json: Json = False) -> None:
    """Compare two models: the angle between matching components, and between the spaces they span.

    Each component of the first is matched to one of the second; where one has more, the last are left out.
    """
    import numpy as np

    from eigengame import EigenGamePCA, metrics

    one, other = EigenGamePCA.load(first), EigenGamePCA.load(second)
    if one.n_features_in_ != other.n_features_in_:
        raise ValueError(
            f"{first} has {one.n_features_in_} features and {second} {other.n_features_in_}: "
            "give models of the same columns."
        )
    k = min(one.n_components_, other.n_components_)
    truth, players = (np.asarray(model.components_[:k], np.float64) for model in (one, other))
    order = metrics.match(players, truth)
    angles = metrics.angular_error(players[order], truth)
    distance = max(float(metrics.subspace_distance(players, truth)), 0.0)
    if json:
        facts = {"models": [first, second], "components": k, "matches": order + 1}
        show_json(facts | {"angle": angles, "subspace_distance": distance})
        return
    show_table(
        ("component", "matches", "angle (rad)", "variance", "variance there"),
        [
            (
                str(i + 1),
                str(order[i] + 1),
                f"{angles[i]:.2g}",
                f"{one.explained_variance_[i]:.4g}",
                f"{other.explained_variance_[order[i]]:.4g}",
            )
            for i in range(k)
        ],
    )
    show(f"Distance of the subspaces: {distance:.2g} (0 the same, 1 at right angles).")
