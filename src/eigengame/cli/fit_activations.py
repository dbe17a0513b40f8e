"""`eigengame fit-activations`: a network and pictures in, a model of its activations out."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from eigengame.cli.game import Game
from eigengame.cli.keeping import Components, Keeping, Output, fitted
from eigengame.cli.networks import opened_network
from eigengame.cli.options import Force, Json, Quiet, component_count, grouped
from eigengame.cli.running import guarded, say, stoppable
from eigengame.cli.showing import (
    facts_of,
    show,
    show_components,
    show_ending,
    show_json,
    show_table,
)
from eigengame.cli.targets import refuse_target, stem_of

EXAMPLES = (
    "eigengame fit-activations torchvision:resnet50 --weights resnet50.pth --images photographs/ -k 32",
    "eigengame fit-activations net.py:make --weights net.safetensors --images photographs/ --layers 'layer1.*'",
    "eigengame fit-activations net.py:make --images photographs/ --list-layers",
)

BATCH = 64
"""Pictures that go through the network at once where nobody says how many."""

NETWORK = "The network and its input"


@guarded
@grouped(Keeping, "keeping")
@grouped(Game, "game")
def fit_activations(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="torchvision:NAME, timm:NAME, file.py:function that returns a torch Module, or a module that "
            "torch.save wrote (.pt, .pth).",
            show_default=False,
        ),
    ],
    images: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|DATA",
            help="A folder of pictures, or any data whose rows the network takes.",
            show_default=False,
        ),
    ],
    game: Game,
    keeping: Keeping,
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN,...",
            help="Modules whose outputs are the features, such as conv1,layer[1-4].*; its blocks if not given.",
        ),
    ] = None,
    components: Components = None,
    output: Output = None,
    force: Force = False,
    list_layers: Annotated[
        bool,
        typer.Option("--list-layers", help="Print names and shapes of all layers, fit nothing."),
    ] = False,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The network's weights: .pt or .pth (a state dict), .safetensors, .npz.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Read a pickled MODEL, which may run any code.", rich_help_panel=NETWORK
        ),
    ] = False,
    size: Annotated[
        int, typer.Option(min=1, help="Pixels of the square crop.", rich_help_panel=NETWORK)
    ] = 224,
    mean: Annotated[
        str | None,
        typer.Option(
            metavar="R,G,B",
            help="Subtracted from pixels from 0 to 1; ImageNet's if not given.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    std: Annotated[
        str | None,
        typer.Option(
            metavar="R,G,B",
            help="Divides pixels; ImageNet's if not given.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where the network runs, such as cuda:0; where JAX plays if not given.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        typer.Option(
            help="Of the network and its rows; auto is bfloat16 on a GPU.", rich_help_panel=NETWORK
        ),
    ] = "auto",
    nonfinite: Annotated[
        Literal["raise", "skip", "zero"],
        typer.Option(
            help="What to do with NaN: refuse it, skip the row, or put 0.", rich_help_panel=NETWORK
        ),
    ] = "raise",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the principal components of a network's activations, and write them to a model file.

    Activations are computed batch by batch where they are played, and never stored.
    """
    k = None if components is None else component_count(components)
    target = Path(f"{stem_of(images)}-activations.safetensors") if output is None else output
    if not list_layers:
        refuse_target(target, (".safetensors",), force=force)
    from eigengame.sources.activations import activations
    from eigengame.sources.image_batches import MEAN, STD, image_batches
    from eigengame.sources.torch.working_copy import jax_device

    batch = BATCH if game.batch_size == "auto" else int(game.batch_size)
    colours = (_numbers(mean, "--mean") or MEAN, _numbers(std, "--std") or STD)
    loader = image_batches(images, 1 if list_layers else batch, size, *colours)
    network = opened_network(model, weights, trust)
    if weights is None and model.startswith(("torchvision:", "timm:")):
        say(f"{model} has random weights: give --weights FILE for others.")
    asked = None if layers is None else [one.strip() for one in layers.split(",")]
    source = activations(
        network,
        loader,
        "**" if list_layers else asked,
        dtype=precision,
        device=device or jax_device(),
        nonfinite=nonfinite,
        name=f"activations of {model}",
    )
    if list_layers:
        _show_list(source.layers, json)
        return
    began = time.perf_counter()
    with stoppable(keeping.checkpoint):
        pca = fitted(source, k, game, keeping, keeping.watchers(quiet))
    pca.save(target)
    if json:
        seconds = time.perf_counter() - began
        told = {"model": model, "images": images, "output": target, "seconds": seconds}
        show_json(told | facts_of(pca) | {"layers": _by_layer(pca)})
        return
    show_components(pca)
    _show_layers(_by_layer(pca))
    show_ending(pca)
    show(f"Written: {target}")


def _numbers(text: str | None, option: str) -> list[float] | None:
    """Return the numbers of a text such as 0.5,0.5,0.5."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r}: give numbers such as 0.5,0.5,0.5.", param_hint=option
        ) from None


def _by_layer(pca: Any) -> list[dict[str, Any]]:
    """Return each layer with its share of every component, and of the variance that all explain."""
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


def _show_layers(layers: list[dict[str, Any]]) -> None:
    """Print how what the components explain is spread over the layers."""
    show_table(
        ("layer", "shape", "features", "of what is explained", "most in component"),
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


def _show_list(layers: Any, json: bool) -> None:
    """Print names and shapes."""
    if json:
        show_json({"layers": layers.facts()})
        return
    for layer in layers:
        sizes = " x ".join(map(str, layer.shape))
        show(f"{layer.name}  {sizes}  {math.prod(layer.shape):,}")
