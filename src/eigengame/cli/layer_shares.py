"""Layers of a network on the terminal: their shares of the components, and the list of all."""

from __future__ import annotations

import math
from typing import Any

from eigengame.cli.output import print_json, print_table


def layer_shares(pca: Any) -> list[dict[str, Any]]:
    """Return the share of each layer in every component, and in the variance that all of them explain."""
    shares = pca.layers_.shares(pca.components_)
    explained = pca.layers_.explained(pca.components_, pca.explained_variance_)
    return [
        {
            "name": layer.name,
            "shape": list(layer.shape),
            "features": layer.end - layer.begin,
            "explained": float(explained[i]),
            "shares": shares[:, i],
        }
        for i, layer in enumerate(pca.layers_)
    ]


def print_layer_shares(layers: list[dict[str, Any]]) -> None:
    """Print the share of each layer in the explained variance."""
    print_table(
        ("layer", "shape", "features", "share of explained variance", "largest in component"),
        [
            (
                one["name"],
                " x ".join(map(str, one["shape"])),
                f"{one['features']:,}",
                f"{one['explained']:.2%}",
                f"{int(one['shares'].argmax()) + 1} ({one['shares'].max():.1%})",
            )
            for one in layers
        ],
    )


def print_layer_list(layers: Any, json: bool) -> None:
    """Print the name, shape and number of features of each layer."""
    if json:
        print_json({"layers": layers.facts()})
        return
    for layer in layers:
        sizes = " x ".join(map(str, layer.shape))
        print(f"{layer.name}  {sizes}  {math.prod(layer.shape):,}")
