"""The network that computes rows: a torch module or a JAX function, with whole inputs or positions as rows."""

from __future__ import annotations

import re
from typing import Any

from eigengame import _check
from eigengame.sources._base import SourceError
from eigengame.sources._jax_network import JaxNetwork
from eigengame.sources._layers import SIDES, Layers
from eigengame.sources._network_inputs import NetworkInputs
from eigengame.sources._positions import PositionOptions

POLICIES = ("raise", "skip", "zero")
"""Policies for non-finite activations."""


def open_network(
    model: Any,
    loader: Any,
    layers: Any,
    options: PositionOptions,
    *,
    output: Any = None,
    side: str = SIDES[0],
    dtype: Any = "auto",
    network_dtype: Any = "auto",
    device: Any = None,
    key: Any = "auto",
    channels_last: Any = "auto",
    nonfinite: str = "raise",
    replay: bool = True,
    compile: bool = False,
    name: str | None = None,
    by_layer: bool = False,
) -> tuple[Any, NetworkInputs, str]:
    """Return the network that computes rows, the inputs of the loader, and the name of the source.

    Parameters are those of `activations`; with `by_layer` whole inputs are gathered layer by layer too.
    """
    _check.one_of("nonfinite", nonfinite, POLICIES)
    _check.one_of("side", side, SIDES)
    if isinstance(layers, Layers) and layers.side != side:
        raise SourceError(
            f"side={side!r}, but the given layers are {layers.side}: give side={layers.side!r}, or names of layers."
        )
    for option, value in (("replay", replay), ("compile", compile)):
        if not isinstance(value, bool):
            raise SourceError(f"{option}={value!r}: give True or False.")
    if compile and options.rows != "inputs":
        raise SourceError(
            f"compile=True is for rows='inputs': with rows={options.rows!r} the number of positions may differ "
            "between batches, and each number would be compiled; leave out compile."
        )
    kind = "activations" if side == SIDES[0] else "layer inputs"
    name = name or f"{kind} of {getattr(model, '__name__', type(model).__name__)}"
    patterns, gathered = _patterns_of(layers), by_layer or options.rows != "inputs"
    inputs = NetworkInputs(loader, key, name, whole_dicts=options.rows != "inputs")
    if any(kind.__module__.split(".")[0] == "torch" for kind in type(model).__mro__):
        from eigengame.sources.torch.network import TorchNetwork
        from eigengame.sources.torch.positions import TorchPositions

        network = TorchNetwork(
            model,
            patterns,
            dtype=dtype,
            network_dtype=network_dtype,
            device=device,
            channels_last=channels_last,
            nonfinite=nonfinite,
            replay=replay,
            compile=compile,
            name=name,
            output=output,
            side=side,
        )
        if not gathered:
            return network, inputs, name
        return TorchPositions(network, options, nonfinite), inputs, name
    if not callable(model):
        raise SourceError(
            f"model is a {type(model).__name__}: give a torch Module, or a function of a batch for JAX."
        )
    if device is not None or channels_last is True:
        raise SourceError(
            f"device={device!r}, channels_last={channels_last!r}: these options are for torch modules; set the "
            "device of a JAX function by jax.default_device."
        )
    if compile:
        raise SourceError(
            "compile=True is for torch modules: a JAX function is always compiled, so leave out compile."
        )
    if output is not None:
        raise SourceError(
            f"output={output!r} is for torch modules: outputs of a JAX function are chosen by layers=."
        )
    if side != SIDES[0]:
        raise SourceError(
            f"side={side!r} is for torch modules: a JAX function returns its features, so return the arrays that "
            'go into the layer, such as {"fc": hidden}, and leave out side=.'
        )
    if network_dtype != "auto":
        raise SourceError(
            f"network_dtype={network_dtype!r} is for torch modules: a JAX function computes in the precision of "
            "its weights."
        )
    function = JaxNetwork(model, patterns, dtype=dtype, nonfinite=nonfinite, name=name)
    if not gathered:
        return function, inputs, name
    from eigengame.sources._jax_positions import JaxPositions

    # Only a function that sees the mask can tell padding from tokens.
    sees_mask = inputs.key is None and isinstance(options.mask, (str, int))
    padded = options.rows == "tokens" and sees_mask
    return JaxPositions(function, options, nonfinite, padded=padded), inputs, name


def _patterns_of(layers: Any) -> list[str] | None:
    """Return names and patterns as a list; None for all layers."""
    if layers is None:
        return None
    if isinstance(layers, Layers):
        # The suffix of the second and later runs of a module is not part of its name.
        return list(dict.fromkeys(re.sub(r":\d+$", "", name) for name in layers.names))
    names = [layers] if isinstance(layers, str) else list(layers)
    if not all(isinstance(one, str) for one in names):
        raise SourceError(f"layers={layers!r}: give names or patterns of layers.")
    return names
