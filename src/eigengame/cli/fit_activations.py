"""`eigengame fit-activations`: fit the activations of a network and write a model file."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from eigengame._system import interrupts
from eigengame.cli.errors import handle_errors, import_jax, print_message, with_resume_hint
from eigengame.cli.estimator_options import EstimatorOptions
from eigengame.cli.fitting import Components, Output, RunOptions, fit_source
from eigengame.cli.layer_fits import check_target, fit_each, refuse_unused
from eigengame.cli.layer_shares import layer_shares, print_layer_list, print_layer_shares
from eigengame.cli.networks import check_arguments, open_network
from eigengame.cli.options import (
    Force,
    Json,
    Quiet,
    option_group,
    options_in_panel,
    parse_component_count,
)
from eigengame.cli.output import (
    model_summary,
    print_components,
    print_json,
    print_outcome,
)
from eigengame.cli.output_paths import check_output_path, data_stem

EXAMPLES = (
    "eigengame fit-activations torchvision:resnet50 --weights resnet50.pth --images photographs/ -k 32",
    "eigengame fit-activations net.py:make --weights net.safetensors --images photographs/ --layers 'layer1.*'",
    "eigengame fit-activations net.py:make --images photographs/ --list-layers",
    "eigengame fit-activations gpt.py:make --tokens ids.npy --padding 0 --layers residual --each -k 32 -o layers/",
    "eigengame fit-activations gpt.py:make --tokens ids.npy --layers mlp --side inputs --each -k 16 -o inputs/",
)

DEFAULT_BATCH = 64
"""Images per batch of the network, with --batch-size auto."""

_network_option = options_in_panel("Network and input")


@handle_errors
@option_group(RunOptions, "run")
@option_group(EstimatorOptions, "estimator")
def fit_activations(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="torchvision:NAME, timm:NAME, file.py:function that returns a torch Module, or a module saved by "
            "torch.save (.pt, .pth).",
            show_default=False,
        ),
    ],
    estimator: EstimatorOptions,
    run: RunOptions,
    images: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|DATA",
            help="A folder of images, or any data whose rows are inputs of the network.",
            show_default=False,
        ),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Token ids, one text in each row, instead of --images; implies --rows tokens.",
            show_default=False,
        ),
    ] = None,
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="Fit each layer by itself, all in one pass. -o names a file for all of them, or a folder.",
        ),
    ] = False,
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN,...",
            help="Modules whose outputs (or inputs, see --side) are the features, such as conv1,layer[1-4].*; "
            "residual, attention or mlp of a transformer. Default: all blocks.",
        ),
    ] = None,
    components: Components = None,
    output: Output = None,
    force: Force = False,
    list_layers: Annotated[
        bool,
        typer.Option(
            "--list-layers", help="Print the names and shapes of all layers, without a fit."
        ),
    ] = False,
    weights: Annotated[
        Path | None,
        _network_option(
            metavar="FILE",
            help="Weights of the network: .pt or .pth (a state dict), .safetensors, .npz.",
        ),
    ] = None,
    trust: Annotated[
        bool, _network_option("--trust", help="Load a pickled MODEL, which can run arbitrary code.")
    ] = False,
    rows: Annotated[
        Literal["inputs", "tokens", "pixels"] | None,
        _network_option(
            help="What a row is: a whole input, or one position of an output (inputs, positions, features) or of a "
            "feature map (inputs, channels, height, width). Default: inputs.",
            show_default=False,
        ),
    ] = None,
    side: Annotated[
        Literal["outputs", "inputs"],
        _network_option(
            help="Features are what comes out of the modules of --layers, or what goes into them."
        ),
    ] = "outputs",
    padding: Annotated[
        int | None,
        _network_option(
            metavar="ID",
            help="Id of padding in --tokens, which is left out. The network is called with input_ids and "
            "attention_mask.",
        ),
    ] = None,
    every: Annotated[int, _network_option(min=1, help="Use each n-th position of an input.")] = 1,
    per_input: Annotated[
        int | None,
        _network_option(
            min=1, metavar="NUMBER", help="Draw at most this many positions of an input."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        _network_option(metavar="FILE.svg", help="With --each: draw the table of the layers."),
    ] = None,
    size: Annotated[int, _network_option(min=1, help="Side of the square crop, in pixels.")] = 224,
    mean: Annotated[
        str | None,
        _network_option(
            metavar="R,G,B",
            help="Mean of the pixels (0 to 1), subtracted. Default: that of ImageNet.",
        ),
    ] = None,
    std: Annotated[
        str | None,
        _network_option(
            metavar="R,G,B", help="Standard deviation of the pixels. Default: that of ImageNet."
        ),
    ] = None,
    device: Annotated[
        str | None,
        _network_option(
            help="Device of the network, such as cuda:0. Default: the device that JAX uses."
        ),
    ] = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        _network_option(
            help="Precision of the network and its outputs; auto is bfloat16 on a GPU."
        ),
    ] = "auto",
    nonfinite: Annotated[
        Literal["raise", "skip", "zero"],
        _network_option(
            help="Rows with NaN or infinity: raise an error, skip the row, or replace the values by zero."
        ),
    ] = "raise",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the principal components of a network's activations, and write them to a model file.

    Activations are computed batch by batch on the device of the fit, and never stored.
    """
    k = None if components is None else parse_component_count(components)
    data = _only_input(images, tokens, padding)
    kind = rows or ("inputs" if tokens is None else "tokens")
    target = Path(f"{data_stem(data)}-activations.safetensors") if output is None else output
    if each and not list_layers:
        refuse_unused(estimator, run, k)
        check_target(target, picture, force=force)
    elif not list_layers:
        if picture is not None:
            raise ValueError("--picture is for --each: give both, or write a report of the model.")
        check_output_path(target, (".safetensors",), force=force)
    import_jax()
    from eigengame.sources.activations import activations
    from eigengame.sources.image_batches import MEAN, STD, image_batches
    from eigengame.sources.token_batches import TokenBatches
    from eigengame.sources.torch.working_copy import jax_device

    batch = DEFAULT_BATCH if estimator.batch_size == "auto" else int(estimator.batch_size)
    batch = 1 if list_layers else batch
    loader: Any
    if tokens is not None:
        loader = TokenBatches(tokens, batch, padding)
    else:
        scaling = (_parse_numbers(mean, "--mean") or MEAN, _parse_numbers(std, "--std") or STD)
        loader = image_batches(data, batch, size, *scaling)
    network = open_network(model, weights, trust)
    if padding is not None:
        check_arguments(network, ("input_ids", "attention_mask"))
    if weights is None and model.startswith(("torchvision:", "timm:")):
        print_message(f"{model} has random weights: give --weights FILE for trained ones.")
    patterns = None if layers is None else [one.strip() for one in layers.split(",")]
    options: dict[str, Any] = {
        "rows": kind,
        "side": side,
        "mask": None if padding is None else "attention_mask",
        "every": every,
        "per_input": per_input,
        "dtype": precision,
        "device": device or jax_device(),
        "nonfinite": nonfinite,
        "name": f"{'layer inputs' if side == 'inputs' else 'activations'} of {Path(model).name}",
    }
    if list_layers:
        whole = options | {"rows": "inputs", "mask": None, "every": 1, "per_input": None}
        key = "auto" if padding is None else None
        print_layer_list(activations(network, loader, "**", key=key, **whole).layers, json)
        return
    if each:
        about = {"model": model, "data": data, "side": side, "output": target}
        fit_each(
            network,
            loader,
            patterns,
            None if k is None else int(k),
            estimator,
            target,
            picture,
            json=json,
            about=about,
            **options,
        )
        return
    # A batch of the network has other rows than a batch of the fit.
    if kind != "inputs" and estimator.batch_size != "auto":
        estimator = replace(estimator, batch_size="auto")
    source = activations(network, loader, patterns, **options)
    began = time.perf_counter()
    with with_resume_hint(run.checkpoint):
        pca = fit_source(source, k, estimator, run, run.watchers(quiet))
        interrupts.check()
    pca.save(target)
    if json:
        seconds = time.perf_counter() - began
        facts = {"model": model, "images": data, "side": side, "output": target, "seconds": seconds}
        print_json(facts | model_summary(pca) | {"layers": layer_shares(pca)})
        return
    print_components(pca)
    print_layer_shares(layer_shares(pca))
    print_outcome(pca)
    print(f"Written: {target}")


def _only_input(images: str | None, tokens: str | None, padding: int | None) -> str:
    """Return the path of the inputs: either images or tokens."""
    if (images is None) == (tokens is None):
        raise typer.BadParameter(
            "give either --images or --tokens.", param_hint="--images / --tokens"
        )
    if padding is not None and tokens is None:
        raise typer.BadParameter("is for --tokens.", param_hint="--padding")
    return images if images is not None else str(tokens)


def _parse_numbers(text: str | None, option: str) -> list[float] | None:
    """Return the numbers in a text such as 0.5,0.5,0.5."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r}: give numbers such as 0.5,0.5,0.5.", param_hint=option
        ) from None
