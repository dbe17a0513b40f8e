"""`eigengame compare`: angles between the components of two models."""

from __future__ import annotations

import sys
import warnings

from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.options import Json, ModelFile
from eigengame.cli.output import print_json, print_table

EXAMPLES = (
    "eigengame compare one-pass.safetensors refined.safetensors",
    "eigengame compare monday.safetensors tuesday.safetensors --json",
)


@handle_errors
def compare(first: ModelFile, second: ModelFile, json: Json = False) -> None:
    """Compare two models: angles between matching components, and principal angles between their subspaces.

    Each component of the first model is matched with one of the second. If one model has more components, its last
    ones are ignored. Features are aligned by name if both models have feature names. Principal angles do not depend
    on the order of the components, nor on the choice of components within a subspace.
    """
    import numpy as np

    import_jax()
    from eigengame import EigenGamePCA, metrics
    from eigengame.estimator.merging import common_features

    one, other = EigenGamePCA.load(first), EigenGamePCA.load(second)
    if one.n_features_in_ != other.n_features_in_:
        raise ValueError(
            f"{first} has {one.n_features_in_} features and {second} {other.n_features_in_}: "
            "give models of the same features."
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            _, columns = common_features(one, other)
        except ValueError as error:
            raise ValueError(f"{first} and {second} cannot be compared: {error}") from None
    for warning in caught:
        print(f"Warning: {first} and {second}: {warning.message}", file=sys.stderr)
    k = min(one.n_components_, other.n_components_)
    truth, players = (np.asarray(model.components_[:k], np.float64) for model in (one, other))
    players = players if columns is None else players[:, columns]
    order = metrics.match(players, truth)
    angles = metrics.angular_error(players[order], truth)
    principal = metrics.principal_angles(truth, players)
    distance = max(float(metrics.subspace_distance(players, truth)), 0.0)
    if json:
        facts = {"models": [first, second], "components": k, "matches": order + 1}
        between = {"principal_angles": principal, "subspace_distance": distance}
        print_json(facts | {"angle": angles} | between)
        return
    print_table(
        ("component", "matches", "angle (rad)", "variance", "variance (second)"),
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
    print(f"Principal angles: {', '.join(f'{angle:.2g}' for angle in principal)} rad.")
    print(f"Subspace distance: {distance:.2g} (0: same subspace, 1: orthogonal subspaces).")
